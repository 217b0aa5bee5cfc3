require 'not_installed_at_all'
