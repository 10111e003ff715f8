return operations
end

local operations
local function decide(name, key, a)
  local answer = quick[name] and quick[name](key, a)
  if answer then return answer end
  operations = operations or define()
  local tag, args = '{' .. key .. '}', {}
  for i = 1, COUNTS[name] do args[i] = ARGV[a + i] end
  local keys = { key, tag .. ':queue', tag .. ':waiters', tag .. ':shared', tag .. ':fence',
    tag .. ':gone:' .. (args[1] or '') }
  return operations[name](keys, args)
end

local answers, a = {}, 5
for i = 1, #KEYS, STRIDE do
  local name = ARGV[a]
  local ok, answer = pcall(decide, name, KEYS[i], a)
  if not ok then
    answer = { 'error', type(answer) == 'table' and answer.err or tostring(answer) }
  end
  answers[#answers + 1] = answer
  a = a + 1 + COUNTS[name]
end
return answers
