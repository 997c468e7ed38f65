# Case 18 of docs/cases.md: reads files with messages (docs/errors.md; goldens of refused programs)
# and prints what is wrong with each, then how many there were.
#
# A message has a place in the program, FILE:LINE:COL, unless it is about no program; one about a
# limit says the limit and what was found; none shows the inside of Kiln.
BEGIN {
  # about the command line, the machine, files: there is no place
  split("K0003 K0402 K0803 K0804 K0901 K0902 K0903 K1001 K1002 K1003 K1101 K1199", p, " ")
  for (i in p) placeless[p[i]] = 1
  # least count of numbers in the text
  split("K0202:1 K0203:1 K0204:1 K0205:1 K0404:2 K0505:1 K0702:3 K1001:2", l, " ")
  for (i in l) {
    split(l[i], kv, ":")
    numbers[kv[1]] = kv[2]
  }
}
function bad(why) {
  printf "%s:%d: %s: %s\n", FILENAME, FNR, why, $0
  n_bad++
}
# Numbers of a text, those in names and quotes of the program aside.
function count_numbers(text, n) {
  gsub(/`[^`]*`/, "", text)
  gsub(/[A-Za-z_][A-Za-z_0-9.]*/, "", text)
  n = gsub(/-?[0-9]+(\.[0-9]+)?/, "", text)
  return n
}
/(^|: )(error|warning): .*\[K[0-9][0-9][0-9][0-9]\]$/ {
  total++
  code = substr($0, length($0) - 5, 5)
  text = $0
  sub(/^.*(error|warning): /, "", text)
  sub(/ \[K[0-9]+\]$/, "", text)
  if (!(code in placeless) && code != "K1006" && $0 !~ /^[A-Za-z0-9_.\/-]+\.(lua|tir):[0-9]+:[0-9]+: /)
    bad("no place in the program")
  if (code == "K1006" && $0 !~ /\.(lua|tir):[0-9]+:[0-9]+: / && $0 !~ /[0-9]+ elements/)
    bad("no place in the program")
  # "larger than 4096": what was found is more, and was not counted on
  least = text ~ /(larger|deeper|more|longer) than [0-9]+/ ? 1 : numbers[code]
  if (code in numbers && count_numbers(text) < least)
    bad("fewer than " least " numbers: the limit and what was found")
  if (code == "K0001" || tolower(text) ~ /internal error|internal inconsistency|assertion `|segmentation/)
    bad("the inside shows")
}
# Stacks and addresses of the library itself.
/^#[0-9]+ +0x[0-9a-f]+ |[Ss]tack traceback|Traceback \(most recent|[a-z_]+\.c:[0-9]+: |core dumped/ {
  bad("a trace of Kiln itself")
}
END {
  printf "%d messages, %d wrong\n", total, n_bad
  exit n_bad > 0 || total == 0
}
