export const INIT_HELP = `holdfast init: make what an engine needs before its first use

Usage
  holdfast init [URL] [--wait] [--json]

Options
  --url URL          the engine; the same as URL  [HOLDFAST_URL, else sqlite:]
  --wait             on redlock: wait until no server is in quarantine
  --json             the outcome on stdout as one JSON object, a failure on stderr
  -h, --help

On PostgreSQL and MySQL, init creates tables and routines, or updates older ones. Its user must be
allowed to do that; users of the locks need not be. It also says whether it changed anything,
whether the user of the URL may use the locks, and which GRANT is missing if not. On redlock, init
certifies new servers, which otherwise count only after a while. With --wait it also sits out the
quarantine of restarted servers; short-lived clients alone never do. Other engines need nothing,
and init does not connect to them. Running init again is harmless.

Exit codes
  64 usage   69 refused or unreachable, or a GRANT is missing   78 no such engine, or its client is not installed

Examples
  HOLDFAST_URL=postgres://admin:secret@db/app holdfast init
  holdfast init 'mysql://root@127.0.0.1/app?hold=shedlock'
  holdfast init redlock://10.0.0.1,10.0.0.2,10.0.0.3

A URL with a password belongs in HOLDFAST_URL: every user of the machine can read arguments.`;
