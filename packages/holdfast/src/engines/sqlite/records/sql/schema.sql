-- Version 3. Instants are milliseconds of the host's monotonic clock. They can be compared only
-- inside one frame: one boot and one time namespace.

-- Tokens below "reserved" may have been used, even if a power cut lost the commits that used them.
CREATE TABLE counter (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  next INTEGER NOT NULL,
  reserved INTEGER NOT NULL,
  boot TEXT NOT NULL
) STRICT;

-- One row per grant. The row stays during the lock-delay. A grant that another process made for a
-- waiter is unclaimed (claimed = 0) until the waiter sees it. A grant that its holder has left has
-- no peer: ''.
CREATE TABLE grants (
  resource TEXT NOT NULL,
  grant_id TEXT NOT NULL,
  mode TEXT NOT NULL,
  share_limit INTEGER,
  token INTEGER NOT NULL,
  tokens INTEGER NOT NULL,
  ttl_ms REAL NOT NULL,
  lock_delay_ms REAL NOT NULL,
  label TEXT NOT NULL,
  peer TEXT NOT NULL,
  frame TEXT NOT NULL,
  expires_at REAL NOT NULL,
  version INTEGER NOT NULL,
  claimed INTEGER NOT NULL,
  revoked INTEGER NOT NULL,
  -- Which of the grant's tokens is in use, and the number of the last renewal that was carried out.
  token_index INTEGER NOT NULL,
  last_order INTEGER NOT NULL,
  PRIMARY KEY (resource, grant_id)
) STRICT, WITHOUT ROWID;

-- An exclusive grant is alone on its resource; only shared grants are looked up by token.
CREATE INDEX grants_that_share ON grants (resource, token) WHERE mode = 'shared';

CREATE INDEX grants_to_tell ON grants (peer) WHERE claimed = 0 OR revoked = 1;

CREATE TABLE waiters (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  resource TEXT NOT NULL,
  grant_id TEXT NOT NULL UNIQUE,
  mode TEXT NOT NULL,
  share_limit INTEGER,
  tokens INTEGER NOT NULL,
  ttl_ms REAL NOT NULL,
  lock_delay_ms REAL NOT NULL,
  label TEXT NOT NULL,
  peer TEXT NOT NULL
) STRICT;

CREATE INDEX waiters_in_line ON waiters (resource, seq);
CREATE INDEX waiters_that_share ON waiters (resource, share_limit) WHERE mode = 'shared';

-- One row per open engine: its identity, so that its death can be proven, and the number of its
-- wake file ("bell").
CREATE TABLE peers (
  id TEXT PRIMARY KEY,
  boot TEXT NOT NULL,
  pid_namespace TEXT NOT NULL,
  pid INTEGER NOT NULL,
  started TEXT NOT NULL,
  bell INTEGER,
  frame TEXT NOT NULL,
  beat_at REAL NOT NULL,
  version INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Ids of cancelled claims, and notifications for peers whose grants were ended by force.
CREATE TABLE tombstones (
  grant_id TEXT PRIMARY KEY,
  frame TEXT NOT NULL,
  until REAL NOT NULL
) STRICT, WITHOUT ROWID;

-- When an observer in another frame first saw the current version of a grant or peer.
CREATE TABLE sightings (
  subject TEXT NOT NULL,
  frame TEXT NOT NULL,
  version INTEGER NOT NULL,
  seen_at REAL NOT NULL,
  PRIMARY KEY (subject, frame)
) STRICT, WITHOUT ROWID;
