-- Runs the operation of this name. Gives its answer, or { 'error', message } where it failed.
return function(name, key, args)
  local tag = '{' .. key .. '}'
  local keys = { key, tag .. ':queue', tag .. ':waiters', tag .. ':shared', tag .. ':fence',
    tag .. ':gone', tag .. ':ends', tag .. ':tokens' }
  local ok, decided = pcall(operations[name], keys, args)
  return ok and decided or
    { 'error', type(decided) == 'table' and decided.err or tostring(decided) }
end
end)()
  end

  if rest then
    answer = {}
    for _, j in ipairs(rest) do
      answer[#answer + 1] = j
      answer[#answer + 1] = decide('renew', KEYS[i + j], { sub(ARGV[a + 4], j * 32 + 1, j * 32 + 32),
        ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], '0' })
    end
  elseif not answer and size == 0 and id then
    answer = decide(mark, key, { id, terms })
  elseif not answer then
    local args = {}
    for n = 1, size do args[n] = ARGV[a + n] end
    answer = decide(name, key, args)
  end
  count = count + 1
  answers[count] = answer
  a = a + 1 + size
  i = i + span
end
if count == 1 then return answers[1] end
return answers
