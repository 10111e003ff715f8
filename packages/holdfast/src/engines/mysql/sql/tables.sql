-- Grants, waiters, and tombstones of claims that were released before they arrived. All times are the
-- database's, in microseconds of UTC. Names are bytes: no collation folds, pads or normalises them.
-- Every change of a resource first locks its row in `resources`, in the order of names; renewals do
-- not.

-- last_token: the last token of the last grant. used_us: nobody can have left the resource before this
-- instant. A sweep looks at the row once used_us is as long ago as the caller keeps idle rows, and
-- moves it if the resource is in use. held: the number of grants. counted_us: until then nobody counts
-- again, see holding.sql. heard_us: the time of the last heartbeat of any waiter.
CREATE TABLE IF NOT EXISTS holdfast_resources (
  name VARBINARY(1024) NOT NULL PRIMARY KEY,
  last_token BIGINT NOT NULL DEFAULT 0,
  used_us BIGINT NOT NULL,
  held BIGINT NOT NULL DEFAULT 0,
  counted_us BIGINT NOT NULL DEFAULT 0,
  heard_us BIGINT NOT NULL DEFAULT 0,
  KEY used (used_us)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;
-- next
-- One row: no deleted resource had a greater token.
CREATE TABLE IF NOT EXISTS holdfast_counter (
  id TINYINT NOT NULL PRIMARY KEY,
  token_floor BIGINT NOT NULL
) ENGINE = InnoDB;
-- next
INSERT IGNORE INTO holdfast_counter VALUES (1, 0);
-- next
-- limit_to: 0 means no limit. expires_us: the lock-delay follows, and only then is the grant over.
-- renewal_order: the number of the last renewal that was carried out. token_index: which of the tokens
-- is in use. is_left: the holder has left, and the grant ends by time alone. The key `holders` is on
-- two columns that never change, so that a renewal writes to no index.
CREATE TABLE IF NOT EXISTS holdfast_grants (
  grant_id BINARY(16) NOT NULL PRIMARY KEY,
  resource VARBINARY(1024) NOT NULL,
  shared TINYINT NOT NULL,
  limit_to BIGINT NOT NULL,
  token BIGINT NOT NULL,
  tokens INT NOT NULL,
  ttl_ms BIGINT NOT NULL,
  delay_ms BIGINT NOT NULL,
  expires_us BIGINT NOT NULL,
  revoked TINYINT NOT NULL DEFAULT 0,
  batch BIGINT NOT NULL DEFAULT 0,
  label VARBINARY(1024) NOT NULL,
  renewal_order BIGINT NOT NULL DEFAULT 0,
  token_index INT NOT NULL DEFAULT 0,
  is_left TINYINT NOT NULL DEFAULT 0,
  KEY holders (resource, token)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;
-- next
-- One row for each grant. Users' transactions lock it, and renewals do not touch it. refused: the token
-- that was in use when the grant was revoked. It has no other index: fence.sql needs the primary key,
-- and a locking read by another index locks more.
CREATE TABLE IF NOT EXISTS holdfast_fences (
  resource VARBINARY(1024) NOT NULL,
  token BIGINT NOT NULL,
  tokens INT NOT NULL,
  shared TINYINT NOT NULL,
  refused BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (resource, token)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;
-- next
-- place: order of arrival. nth: one more than nth of the waiter before it in the queue. The difference
-- to the head's nth is the position, or a little more: waiters that gave up in between still count.
-- owner: the engine whose waiter it is. batch: of its last heartbeat.
CREATE TABLE IF NOT EXISTS holdfast_waiters (
  grant_id BINARY(16) NOT NULL PRIMARY KEY,
  place BIGINT NOT NULL AUTO_INCREMENT,
  resource VARBINARY(1024) NOT NULL,
  shared TINYINT NOT NULL,
  limit_to BIGINT NOT NULL,
  tokens INT NOT NULL,
  ttl_ms BIGINT NOT NULL,
  delay_ms BIGINT NOT NULL,
  joined_us BIGINT NOT NULL,
  heard_us BIGINT NOT NULL,
  owner BINARY(8) NOT NULL,
  batch BIGINT NOT NULL DEFAULT 0,
  label VARBINARY(1024) NOT NULL,
  nth BIGINT NOT NULL DEFAULT 0,
  KEY line (resource, place),
  KEY sharing (resource, shared),
  UNIQUE KEY place (place)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;
-- next
CREATE TABLE IF NOT EXISTS holdfast_tombstones (
  grant_id BINARY(16) NOT NULL PRIMARY KEY,
  until_us BIGINT NOT NULL,
  KEY until (until_us)
) ENGINE = InnoDB;
-- next
-- In version 6 and older this was a function, which nobody calls any more.
DROP FUNCTION IF EXISTS holdfast_foreign_take;
-- next
-- For tables of version 4 or older. MySQL has no ADD COLUMN IF NOT EXISTS.
SET @holdfast_upgrade = IF(
  EXISTS (SELECT 1 FROM information_schema.columns
           WHERE table_schema = DATABASE() AND table_name = 'holdfast_grants'
             AND column_name = 'is_left'),
  'DO 0',
  'ALTER TABLE holdfast_grants
     ADD COLUMN renewal_order BIGINT NOT NULL DEFAULT 0,
     ADD COLUMN token_index INT NOT NULL DEFAULT 0,
     ADD COLUMN is_left TINYINT NOT NULL DEFAULT 0');
-- next
PREPARE holdfast_upgrade FROM @holdfast_upgrade;
-- next
EXECUTE holdfast_upgrade;
-- next
DEALLOCATE PREPARE holdfast_upgrade;
-- next
-- For tables of version 5 or older, here and below.
SET @holdfast_upgrade = IF(
  EXISTS (SELECT 1 FROM information_schema.columns
           WHERE table_schema = DATABASE() AND table_name = 'holdfast_resources'
             AND column_name = 'heard_us'),
  'DO 0',
  'ALTER TABLE holdfast_resources
     ADD COLUMN held BIGINT NOT NULL DEFAULT 0,
     ADD COLUMN counted_us BIGINT NOT NULL DEFAULT 0,
     ADD COLUMN heard_us BIGINT NOT NULL DEFAULT 0');
-- next
PREPARE holdfast_upgrade FROM @holdfast_upgrade;
-- next
EXECUTE holdfast_upgrade;
-- next
DEALLOCATE PREPARE holdfast_upgrade;
-- next
SET @holdfast_upgrade = IF(
  EXISTS (SELECT 1 FROM information_schema.columns
           WHERE table_schema = DATABASE() AND table_name = 'holdfast_waiters'
             AND column_name = 'nth'),
  'DO 0',
  'ALTER TABLE holdfast_waiters
     ADD COLUMN nth BIGINT NOT NULL DEFAULT 0,
     ADD KEY sharing (resource, shared)');
-- next
PREPARE holdfast_upgrade FROM @holdfast_upgrade;
-- next
EXECUTE holdfast_upgrade;
-- next
DEALLOCATE PREPARE holdfast_upgrade;
-- next
SET @holdfast_upgrade = IF(
  EXISTS (SELECT 1 FROM information_schema.statistics
           WHERE table_schema = DATABASE() AND table_name = 'holdfast_grants'
             AND index_name = 'holders'),
  'DO 0',
  'ALTER TABLE holdfast_grants
     DROP KEY resource, DROP KEY fence, ADD KEY holders (resource, token)');
-- next
PREPARE holdfast_upgrade FROM @holdfast_upgrade;
-- next
EXECUTE holdfast_upgrade;
-- next
DEALLOCATE PREPARE holdfast_upgrade;
