import type { TestQuorum } from "./test-quorum.fixture.js";

const AT_ONCE = 1_000;

// Records as a node writes them, with the counters beside them.
const FILL = `
  local time = redis.call('TIME')
  local at = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
  for i = ARGV[1], ARGV[2] do
    local id, key = string.format('%032x', i), 'holdfast:name-' .. i
    local fence = string.format('%.0f', 1700000000000000 + i)
    local ends, born = string.format('%.0f', at + 250000), string.format('%.0f', at)
    local record = { 'x', 1, fence, 1, 0, 1, 0, 0, 0, ends, born, 'somebody' }
    redis.call('HSET', key, id, table.concat(record, ':'))
    redis.call('PEXPIRE', key, 250000)
    redis.call('SET', '{' .. key .. '}:fence', fence, 'PX', 250000)
  end`;

/** name-<first> to name-<last>, held by somebody; sooner than by asking for them one by one. */
export async function fill(quorum: TestQuorum, first: number, last: number): Promise<void> {
  for (let from = first; from <= last; from += AT_ONCE) {
    const to = Math.min(from + AT_ONCE - 1, last);
    await Promise.all(quorum.admins.map((admin) => admin.eval(FILL, 0, from, to)));
  }
}
