# Tells what happens in an RSpec 3 run, as JSON lines, to the file named by REHEARSAL_EVENTS.
# It listens to RSpec's reporter and is no formatter itself: what the project prints stays as it is.
# Nothing here may change a result: every notification is quiet about its own errors.

require 'json'
require 'rspec/core'

module RehearsalEvents
  ROOM = 8192 # characters kept at each end of a text
  HEARD = %i[start example_started example_passed example_failed example_pending close].freeze

  class Listener
    def initialize
      # Taken away, so that no RSpec that an example starts writes into this run's events.
      path = ENV.delete('REHEARSAL_EVENTS')
      return unless path

      # A FIFO that nobody reads would block: the first open finds out, the second may wait for its reader.
      probe = IO.sysopen(path, IO::WRONLY | IO::APPEND | IO::CREAT | IO::NONBLOCK, 0o600)
      @io = IO.for_fd(IO.sysopen(path, IO::WRONLY | IO::APPEND), 'w')
      @io.sync = true
      IO.for_fd(probe).close
      @pid = Process.pid
      @count = 0
      tell(ev: 'run', runner: 'rspec', version: RSpec::Core::Version::STRING)
    rescue StandardError
      @io = nil
    end

    def start(notification)
      quietly { tell(ev: 'declared', count: notification.count) }
    end

    def example_started(notification)
      quietly do
        example = notification.example
        tell(ev: 'start', **names(example), file: example.metadata[:file_path], line: example.metadata[:line_number])
      end
    end

    def example_passed(notification)
      quietly { ended(notification.example, 'pass') }
    end

    def example_failed(notification)
      quietly do
        example = notification.example
        error = example.execution_result.exception
        fixed = error.is_a?(RSpec::Core::Pending::PendingExampleFixedError)
        ended(example, 'fail', kind: fixed ? 'unexpected_pass' : nil, **failure(error),
                               **place(example))
      end
    end

    def example_pending(notification)
      quietly do
        example = notification.example
        result = example.execution_result
        status = result.pending_exception ? 'xfail' : 'skip'
        ended(example, status, message: result.pending_message.to_s)
      end
    end

    def outside(error, context)
      quietly do
        file = context.to_s[/ while loading (\S+)\.(?=\s|\z)/, 1]
        tell(ev: 'problem', scope: 'suite', name: file || context.to_s, file: file, **failure(error),
             message: "#{error.class}: #{text(error.message)}")
      end
    end

    def close(_notification)
      quietly { tell(ev: 'finish', count: @count) }
    end

    private

    def quietly
      yield if @io && Process.pid == @pid
    rescue StandardError
      @io = nil # a reporter that fails is silent
    end

    def tell(event)
      @io.write("#{JSON.generate(event.compact)}\n") if @io
    end

    def names(example)
      { suite: example.metadata[:rerun_file_path] || example.metadata[:file_path], test: text(example.full_description) }
    end

    def place(example)
      { file: example.metadata[:file_path], line: example.metadata[:line_number] }
    end

    def ended(example, status, **more)
      @count += 1
      seconds = example.execution_result.run_time || 0
      tell(ev: 'end', **names(example), status: status, ms: seconds * 1000, **more)
    end

    def failure(error)
      return {} unless error

      errors = error.respond_to?(:all_exceptions) ? error.all_exceptions : [error]
      first = errors.first || error
      backtrace = first.backtrace || error.backtrace || []
      # The formatter of backtraces leaves out RSpec's own lines, as RSpec does when it prints them.
      shown = RSpec.configuration.backtrace_formatter.format_backtrace(backtrace)
      { class: first.class.name, message: text(first.message), stack: text(shown.join("\n")), frames: frames(shown) }
    end

    def frames(backtrace)
      backtrace.first(50).map { |line| line.match(/\A(.+?):(\d+)/) }.compact.map { |found| [found[1], found[2].to_i] }
    end

    def text(value)
      whole = value.to_s.dup.force_encoding(Encoding::UTF_8).scrub
      return whole if whole.length <= 2 * ROOM

      "#{whole[0, ROOM]}\n[… #{whole.length - 2 * ROOM} characters left out …]\n#{whole[-ROOM, ROOM]}"
    end
  end

  module Reporting
    def initialize(*)
      super
      @rehearsal_events = Listener.new
      register_listener(@rehearsal_events, *HEARD)
    end

    def notify_non_example_exception(exception, context_description)
      @rehearsal_events.outside(exception, context_description)
      super
    end
  end
end

RSpec::Core::Reporter.prepend(RehearsalEvents::Reporting)
