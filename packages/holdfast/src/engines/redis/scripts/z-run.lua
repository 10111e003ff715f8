return function(name, key, from, size)
  local tag, args = '{' .. key .. '}', {}
  for n = 1, size do args[n] = ARGV[from + n] end
  local keys = { key, tag .. ':queue', tag .. ':waiters', tag .. ':shared', tag .. ':fence',
    tag .. ':gone:' .. (args[1] or '') }
  return operations[name](keys, args)
end
end)()
  end

  if not answer then
    local ok, decided = pcall(decide, name, key, a, size)
    answer = ok and decided or
      { 'error', type(decided) == 'table' and decided.err or tostring(decided) }
  end
  count = count + 1
  answers[count] = answer
  a = a + 1 + size
end
if count == 1 then return answers[1] end
return answers
