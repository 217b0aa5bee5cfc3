# The project has nothing to set up.
