export const RUN_HELP = `holdfast run: run a command while holding a lock

Usage
  holdfast run NAME [options] -- command args…

Options
  --url URL          the engine, like redis://h:6379  [HOLDFAST_URL, else a file of this host]
  --wait 5s          how long to wait for the lock, and before that, again for so long (at
                     least 1s), for a server that is not there; 0s: do not wait  [for ever]
  --ttl 30s          how long the lock outlives us if we die; renewed while we live  [30s]
  --shared           share with other --shared runs, exclude the others
  --limit N          share among at most N runs at once (implies --shared)
  --label TEXT       what others read while they wait for us  [host/pid command]
  --lock-delay 5s    after a loss, keep the lock closed for so long  [0s]
  --grace 5s         on loss, most time from SIGTERM to SIGKILL  [a third of ttl, at most 10s]
  --json             events on stderr, one JSON object a line
  -q, --quiet        say nothing but errors; with --wait 0s not even that the lock is taken
  -h, --help

Durations are a whole number and a unit: 500ms, 10s, 5m, 1h.

The command
  Input, output, terminal and signals are the command's own; its exit code is ours. It finds
    HOLDFAST_LOCK         the lock's name
    HOLDFAST_TOKEN        a number greater than that of every earlier run
    HOLDFAST_SEQUENCER    both in one text, for locks.check(…)
    HOLDFAST_RUN          marks what this run started
  in its environment. If the lock is lost, the command and what it started get SIGTERM, and
  SIGKILL before anybody else can have the lock. Where somebody may have it already, because it
  is gone at the engine or this program stood still for too long, they get SIGKILL at once.

Exit codes
  the command's own, or 128 + n if signal n ended it; 126 not executable, 127 not found
  64 usage   69 engine unreachable, or refuses   70 defect   75 not granted within --wait
  76 the lock was lost   78 the engine lacks what was asked, or its client is not installed

Examples
  holdfast run nightly -- ./backup.sh
  holdfast run nightly --wait 0s --quiet -- ./backup.sh || [ $? -eq 75 ]    one is running
  holdfast run catalogue --shared -- ./read-report.sh
  holdfast run gpu --limit 2 --wait 10m -- python train.py
  holdfast run deploy -- sh -c 'psql -v token="$HOLDFAST_TOKEN" -f deploy.sql'

Notes
  One at a time is not once: if cron starts it on several hosts, and it is done before the last
  of their clocks has come round, each host runs it: docs/command-line.md of this package.
  The lock is given back when the command ends, whatever it left running in the background.
  If this program itself is killed with SIGKILL, the command goes on without a lock. Give
  --lock-delay, or check HOLDFAST_TOKEN where the data lives.
  A URL with a password belongs in HOLDFAST_URL: every user of the machine can read --url.`;
