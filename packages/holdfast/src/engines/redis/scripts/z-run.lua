return operations
end

local operations
local function decide(name, k, a, count)
  local answer = quick[name] and quick[name](k, a)
  if answer then return answer end
  operations = operations or define()
  local keys, args = {}, {}
  for i = 0, 5 do keys[i + 1] = KEYS[k + i] end
  for i = 1, count do args[i] = ARGV[a + i] end
  return operations[name](keys, args)
end

local answers, key, arg = {}, 1, 1
while arg <= #ARGV do
  local name, count = ARGV[arg], tonumber(ARGV[arg + 1])
  local ok, answer = pcall(decide, name, key, arg + 1, count)
  if ok then
    answers[#answers + 1] = answer
  else
    local message = type(answer) == 'table' and answer.err or tostring(answer)
    answers[#answers + 1] = { 'error', message }
  end
  key, arg = key + 6, arg + 2 + count
end
return answers
