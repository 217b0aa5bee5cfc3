use strict;
use warnings;
use Test::More;

$| = 1;
ok(1, 'passes');
is(1 + 1, 3, 'fails');
SKIP: { skip 'not today', 1; }
kill 'SEGV', $$ if ($ENV{MISBEHAVE} // '') eq 'crash';
sleep 3600 if ($ENV{MISBEHAVE} // '') eq 'hang';
ok(1, 'misbehaves');
done_testing();
