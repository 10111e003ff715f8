-- Grants, waiters, and tombstones of claims that were released before they arrived. All times are the
-- database's. Every change of a resource first locks its row in `resources`, in the order of names.
-- Only renewals skip that lock, because they wait for nobody.
--
-- Rows come and go quickly, so the statistics are always wrong. Every routine that is called from
-- outside turns off two kinds of plan that would suffer from that. A bitmap scan, which the planner
-- chooses for a table without statistics, meets every version of a row since the last vacuum, because
-- it does not mark dead index entries as an index scan does. A sequential scan, planned for an empty
-- table, would read the whole table once it is full. JIT compilation is off too: the estimated cost of
-- a statement without an index is enormous.
CREATE TABLE IF NOT EXISTS holdfast.resources (
  name text COLLATE "C" PRIMARY KEY,
  turns bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
-- due_at: nobody can have left the resource before this instant. A sweep looks at the row once due_at
-- is as long ago as the caller keeps idle rows. Turns and renewals do not change it, so that they write
-- to no index. A sweep that comes too early moves it.
ALTER TABLE holdfast.resources ADD COLUMN IF NOT EXISTS due_at timestamptz NOT NULL DEFAULT now();
ALTER TABLE holdfast.resources ALTER COLUMN due_at SET DEFAULT now();
CREATE INDEX IF NOT EXISTS resources_due ON holdfast.resources (due_at);
-- held: the number of holders, if it is kept. counted_until: until then the number is right, and none
-- of these grants is over. holding.sql keeps both for resources with many holders.
ALTER TABLE holdfast.resources ADD COLUMN IF NOT EXISTS held bigint NOT NULL DEFAULT 0;
ALTER TABLE holdfast.resources ADD COLUMN IF NOT EXISTS counted_until timestamptz NOT NULL DEFAULT '-infinity';

-- limit_to: 0 means no limit. expires_at: the lock-delay follows, and only then is the grant over.
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
-- renewal_order: the number of the last renewal that was carried out. token_index: which of the tokens
-- is in use. is_left: the holder has left, and the grant ends by time alone.
ALTER TABLE holdfast.grants ADD COLUMN IF NOT EXISTS renewal_order bigint NOT NULL DEFAULT 0;
ALTER TABLE holdfast.grants ADD COLUMN IF NOT EXISTS token_index integer NOT NULL DEFAULT 0;
ALTER TABLE holdfast.grants ADD COLUMN IF NOT EXISTS is_left boolean NOT NULL DEFAULT false;
-- On two columns that never change, so that a renewal writes to no index.
CREATE INDEX IF NOT EXISTS grants_token ON holdfast.grants (resource, token);
DROP INDEX IF EXISTS holdfast.grants_resource;

-- place: order of arrival. beat: number of the last heartbeat; the enqueue is number 0. channel: where
-- the waiter's process listens; empty if it does not.
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
-- nth: one more than nth of the waiter before it in the queue. The difference to the head's nth is the
-- position, or a little more: waiters that gave up in between still count.
ALTER TABLE holdfast.waiters ADD COLUMN IF NOT EXISTS nth bigint NOT NULL DEFAULT 0;
CREATE INDEX IF NOT EXISTS waiters_line ON holdfast.waiters (resource, place);
CREATE INDEX IF NOT EXISTS waiters_shared ON holdfast.waiters (resource) WHERE shared;

CREATE TABLE IF NOT EXISTS holdfast.tombstones (
  grant_id uuid PRIMARY KEY,
  until timestamptz NOT NULL
);
CREATE INDEX IF NOT EXISTS tombstones_until ON holdfast.tombstones (until);

-- Each number leaves room for a whole range of tokens. It is taken only while the resource's row is
-- locked, so that numbers rise in the order of grants. Sessions do not cache numbers, and a crash does
-- not give one twice.
CREATE SEQUENCE IF NOT EXISTS holdfast.tokens INCREMENT BY 1024 MINVALUE 1 CACHE 1 NO CYCLE;
