DELETE FROM sightings
WHERE subject NOT IN (SELECT grant_id FROM grants) AND subject NOT IN (SELECT id FROM peers)
