-- What is held, who waits, and what was given back before it arrived. Time is the database's.
-- Whoever changes anything of a resource locks its row in `resources` first, in the order of names;
-- renewals alone do without, because they never wait for anybody.
--
-- Rows come and go, so statistics are always wrong: whatever is called from outside turns off the two
-- kinds of plan that would pay for it. A bitmap scan, which is chosen where nothing is known of a table, meets
-- every version of a row since the last vacuum, because it does not mark the dead ones in the index as
-- an index scan does; a plan made for an empty table reads it from end to end when it is full. Nor is
-- any statement compiled: where it has no index, its cost on paper is enormous.
CREATE TABLE IF NOT EXISTS holdfast.resources (
  name text COLLATE "C" PRIMARY KEY,
  turns bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
-- due_at: before this nobody can have left it. A sweep looks when that is as long ago as its caller
-- keeps what is idle. Turns and renewals leave it alone, so that none of them writes to an index; a
-- sweep that comes too early puts it off.
ALTER TABLE holdfast.resources ADD COLUMN IF NOT EXISTS due_at timestamptz NOT NULL DEFAULT now();
ALTER TABLE holdfast.resources ALTER COLUMN due_at SET DEFAULT now();
CREATE INDEX IF NOT EXISTS resources_due ON holdfast.resources (due_at);
-- held: how many hold, where that is kept. counted_until: so long it is right, and nobody of them is over;
-- holding.sql keeps both for resources with many holders.
ALTER TABLE holdfast.resources ADD COLUMN IF NOT EXISTS held bigint NOT NULL DEFAULT 0;
ALTER TABLE holdfast.resources ADD COLUMN IF NOT EXISTS counted_until timestamptz NOT NULL DEFAULT '-infinity';

-- limit_to: 0 is "without limit". expires_at: then follows the lock-delay, and only then is it over.
CREATE TABLE IF NOT EXISTS holdfast.grants (
  grant_id uuid PRIMARY KEY,
  resource text COLLATE "C" NOT NULL,
  shared boolean NOT NULL,
  limit_to bigint NOT NULL,
  token bigint NOT NULL,
  tokens integer NOT NULL,
  ttl_ms bigint NOT NULL,
  delay_ms bigint NOT NULL,
  expires_at timestamptz NOT NULL,
  revoked boolean NOT NULL DEFAULT false,
  label text NOT NULL
) WITH (fillfactor = 50);
-- renewal_order: of the last renewal that was carried out. token_index: which of the tokens is in use.
-- is_left: its holder has gone, and it ends by time alone.
ALTER TABLE holdfast.grants ADD COLUMN IF NOT EXISTS renewal_order bigint NOT NULL DEFAULT 0;
ALTER TABLE holdfast.grants ADD COLUMN IF NOT EXISTS token_index integer NOT NULL DEFAULT 0;
ALTER TABLE holdfast.grants ADD COLUMN IF NOT EXISTS is_left boolean NOT NULL DEFAULT false;
-- Of two columns that never change: a renewal writes to no index.
CREATE INDEX IF NOT EXISTS grants_token ON holdfast.grants (resource, token);
DROP INDEX IF EXISTS holdfast.grants_resource;

-- place: order of arrival. beat: number of the last heartbeat; standing in line is number 0.
-- channel: where the waiter's process listens; empty where it cannot.
CREATE TABLE IF NOT EXISTS holdfast.waiters (
  grant_id uuid PRIMARY KEY,
  place bigint GENERATED ALWAYS AS IDENTITY,
  resource text COLLATE "C" NOT NULL,
  shared boolean NOT NULL,
  limit_to bigint NOT NULL,
  tokens integer NOT NULL,
  ttl_ms bigint NOT NULL,
  delay_ms bigint NOT NULL,
  beat bigint NOT NULL DEFAULT 0,
  heard_at timestamptz NOT NULL,
  channel text NOT NULL,
  label text NOT NULL
) WITH (fillfactor = 50);
-- nth: one more than that of the one before it in line. From the head's it tells the position, or a little
-- more: those who gave up in between are counted too.
ALTER TABLE holdfast.waiters ADD COLUMN IF NOT EXISTS nth bigint NOT NULL DEFAULT 0;
CREATE INDEX IF NOT EXISTS waiters_line ON holdfast.waiters (resource, place);
CREATE INDEX IF NOT EXISTS waiters_shared ON holdfast.waiters (resource) WHERE shared;

CREATE TABLE IF NOT EXISTS holdfast.tombstones (
  grant_id uuid PRIMARY KEY,
  until timestamptz NOT NULL
);
CREATE INDEX IF NOT EXISTS tombstones_until ON holdfast.tombstones (until);

-- One number leaves room for a whole range. Taken only under the lock of a resource's row, so that
-- numbers rise in the order of grants; never cached by a session, and never taken back by a crash.
CREATE SEQUENCE IF NOT EXISTS holdfast.tokens INCREMENT BY 1024 MINVALUE 1 CACHE 1 NO CYCLE;
