# Steps of gpu.sh and gpu_first.sh, which source this file: each is a process of its own
# with a limit, a log and a line in steps.jsonl; a failure does not stop the rest.
#
#   OUT       folder of logs and results
#   failures  how many steps have failed so far

failures=0

quote() { printf '%s' "$1" | tr '\n\t' '  ' | sed 's/[[:cntrl:]]//g; s/\\/\\\\/g; s/"/\\"/g'; }

line() { # NAME STATUS SECONDS [WHY]
  local why=
  [ -z "${4:-}" ] || why=", \"why\": \"$(quote "$4")\""
  printf '{"step": "%s", "status": "%s", "seconds": %s%s}\n' "$1" "$2" "$3" "$why" >>"$OUT/steps.jsonl"
  printf '%-28s %-8s %5s s  %s\n' "$1" "$2" "$3" "${4:-}" >&2
}

# Runs a command for at most LIMIT seconds; its output goes to NAME.log.
step() { # NAME LIMIT COMMAND...
  local name=$1 limit=$2 begun=$SECONDS code=0
  shift 2
  timeout --kill-after=5 "$limit" "$@" >"$OUT/$name.log" 2>&1 </dev/null || code=$?
  case $code in
    0) line "$name" ok $((SECONDS - begun)) ;;
    124 | 137) line "$name" timeout $((SECONDS - begun)) "no end within $limit s"; failures=$((failures + 1)) ;;
    *) line "$name" failed $((SECONDS - begun)) "exit $code: $(tail -n 1 "$OUT/$name.log" | cut -c 1-300)"; failures=$((failures + 1)) ;;
  esac
  return "$code"
}

skip() { line "$1" skipped 0 "$2"; } # NAME WHY

# The driver's emulated device, if that is what answers: then nothing is timed.
emulated() { grep -q '"emulated": *true' "$OUT/devices.json" 2>/dev/null; }

# Whether cuBLAS can be used.
cublas() { grep -q '"cublas": *true' "$OUT/devices.json" 2>/dev/null; }

# Why it cannot, in the program's words.
without_cublas() {
  local why
  why=$(sed -n '/"cublas": *{/,/}/s/.*"problem": *"\(.*\)".*/\1/p' "$OUT/devices.json" 2>/dev/null | sed 's/\\\(["\\]\)/\1/g')
  printf '%s' "${why:-devices.json does not say whether there is a cuBLAS}"
}

# Trains, and leaves the summary as epoch-NAME.json.
train() { # NAME LIMIT FLAGS...
  local name=$1 limit=$2
  shift 2
  # shellcheck disable=SC2016 # the inner shell expands them
  step "train-$name" "$limit" sh -c 'out=$1; shift; "$@" >"$out.part" && mv "$out.part" "$out"' sh "$OUT/epoch-$name.json" \
    "$ENGINE" train --json --progress=none --out="$OUT/run-$name" "$@"
}
