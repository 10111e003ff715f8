local answers, a = { whole(us) }, 6
for i = 1, #KEYS do
  local name = ARGV[a]
  local ok, answer = pcall(operations[name], KEYS[i], a)
  if not ok then
    answer = { 'error', type(answer) == 'table' and answer.err or tostring(answer) }
  end
  answers[#answers + 1] = answer
  a = a + 1 + COUNTS[name]
end
return answers
