-- Carries out operations one after the other, each on the keys of its own resource. One that fails
-- does not keep the others from their answers.
-- KEYS  six for each operation
-- ARGV  for each operation its name, the number of its arguments, and these
-- Gives an answer for each operation; { 'error', message } where it failed

local answers, key, arg = {}, 1, 1
while arg <= #ARGV do
  local name, count = ARGV[arg], tonumber(ARGV[arg + 1])
  local keys, args = {}, {}
  for i = 0, 5 do keys[i + 1] = KEYS[key + i] end
  for i = 1, count do args[i] = ARGV[arg + 1 + i] end
  key, arg = key + 6, arg + 2 + count
  local ok, answer = pcall(operations[name], keys, args)
  if ok then
    answers[#answers + 1] = answer
  else
    local message = type(answer) == 'table' and answer.err or tostring(answer)
    answers[#answers + 1] = { 'error', message }
  end
end
return answers
