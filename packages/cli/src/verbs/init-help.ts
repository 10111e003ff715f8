export const INIT_HELP = `holdfast init: make what an engine needs before its first use

Usage
  holdfast init [URL] [--wait] [--json]

Options
  --url URL          the engine, as well  [HOLDFAST_URL, else sqlite:]
  --wait             on redlock: until no server is in quarantine any more
  --json             the outcome on stdout as one JSON object, a failure on stderr
  -h, --help

On PostgreSQL and MySQL it creates tables and routines, or brings older ones up to date; it needs a
user that may do so, the locks themselves do not. On redlock: it certifies new servers, which would
else wait for a while before they count; with --wait it also sits out the quarantine of servers that were
restarted, which short-lived clients alone never do. Other engines need nothing, and are not asked.
On PostgreSQL and MySQL it also says whether there was anything to make, whether the user of the URL
may use the locks, and which GRANT is missing if not. Doing it again is harmless.

Exit codes
  64 usage   69 refused or unreachable, or a GRANT is missing   78 no such engine, or its client is not installed

Examples
  HOLDFAST_URL=postgres://admin:secret@db/app holdfast init
  holdfast init 'mysql://root@127.0.0.1/app?hold=shedlock'
  holdfast init redlock://10.0.0.1,10.0.0.2,10.0.0.3

A URL with a password belongs in HOLDFAST_URL: every user of the machine can read arguments.`;
