return operations
end

local operations
local function decide(name, key, a, size)
  operations = operations or define()
  local tag, args = '{' .. key .. '}', {}
  for i = 1, size do args[i] = ARGV[a + i] end
  local keys = { key, tag .. ':queue', tag .. ':waiters', tag .. ':shared', tag .. ':fence',
    tag .. ':gone:' .. (args[1] or '') }
  return operations[name](keys, args)
end

local function arguments_of(name)
  if name == 'enqueue' or name == 'acquire' then return 6 end
  if name == 'withdraw' then return 1 end
  return name == 'inspect' and 0 or 2
end

local answers, a, stride = {}, 5, tonumber(ARGV[4])
for i = 1, #KEYS, stride do
  local name = ARGV[a]
  local size = arguments_of(name)
  local ok, answer = pcall(quick, name, KEYS[i], a)
  if ok and not answer then ok, answer = pcall(decide, name, KEYS[i], a, size) end
  if not ok then
    answer = { 'error', type(answer) == 'table' and answer.err or tostring(answer) }
  end
  answers[#answers + 1] = answer
  a = a + 1 + size
end
return answers
