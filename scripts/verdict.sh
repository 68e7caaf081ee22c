#!/usr/bin/env bash
# From an accepted objective to a verdict on a kernel of ours, every step of docs/tutorial.md in one go: register, tune, verify, measure
# with the full budget, replay a trace under three policies, declare people's hours, decide, report.
#   usage: scripts/verdict.sh gemm|attention [--small] [--trace FILE] [--threads N] [--out FOLDER]
# --small: tiny sizes and budgets, to see that the chain works; its evidence can reject, never adopt.
# The exit code is that of decide: 0 ADOPT, 8 REJECT, 6 INSUFFICIENT. TILEWRIGHT names the binary (build/release/bin/tilewright).
set -euo pipefail
cd "$(dirname "$0")/.."
tilewright=${TILEWRIGHT:-build/release/bin/tilewright}
case=${1:?usage: scripts/verdict.sh gemm|attention [--small] [--trace FILE] [--threads N] [--out FOLDER]}
shift
small=no trace='' threads=1 out=out/verdict-$case
while [ $# -gt 0 ]; do
  case $1 in
    --small) small=yes; shift ;;
    --trace) trace=$2; shift 2 ;;
    --threads) threads=$2; shift 2 ;;
    --out) out=$2; shift 2 ;;
    *) echo "verdict.sh: unknown $1" >&2; exit 2 ;;
  esac
done
budget=full runs=12 shapes=3 requests=1500 side=512 length=512
[ $small = no ] || { budget=selftest runs=2 shapes=2 requests=40 side=64 length=64; }
case $case in
  gemm)
    kernel=matmul name=tile-matmul-matmul op=gemm:${side}x${side}x${side}:nn dims=N=$side,K=$side own=M=$side keys=M
    served=gemm:1x${side}x${side}:nn key=M references=(--reference rival:openblas --reference rival:onednn --reference rival:blis) ;;
  attention)
    kernel=attention name=tile-attention-attention op=attn:b1hq4hkv4sq${length}sk${length}d64:bshd:causal-br
    dims=B=1,HQ=4,HK=4,D=64 own=S=$length,T=$length keys=S,T served=attn:b1hq4hkv4sq1sk1d64:bshd:causal-br key=SQ,SK references=() ;;
  *) echo "verdict.sh: no case '$case'; gemm and attention are" >&2; exit 2 ;;
esac
candidate=tile:kernels/$kernel.tile:$kernel
[ ! -e "$out/cells.jsonl" ] || { echo "verdict.sh: $out has a record; an objective comes before the measurements: name another --out" >&2; exit 2; }
mkdir -p "$out"
step() { echo; echo "== $*"; }
run() { echo "\$ tilewright $*"; "$tilewright" "$@"; }
may() { run "$@" || { code=$?; [ $code -ge 3 ] || exit $code; echo "(exit $code)"; }; }  # a finding is no failure of the chain

step "the objective, accepted and registered before anything is measured"
cat > "$out/objective.json" <<JSON
{"candidate": "$name", "shape": "$op", "metric": "warm_ms", "percentile": "p50", "min_gain": 0.05, "slo_ms": 20, "peak_mb": 512, "warmup_s": 30,
 "calls_per_day": 20000000, "horizon_days": 180, "starts_per_day": 10, "upgrades_per_year": 4, "human_rate_per_hour": 120, "machine_rate_per_hour": 4,
 "human_cost": "included", "tuning_cost": "included", "accepted_by": "${USER:-the reader}", "accepted_on": "$(date -u +%F)"}
JSON
run decide --register "$out/objective.json" --out "$out"

step "traffic: a request is one call with as many rows as its prompt has tokens"
if [ -z "$trace" ]; then
  trace=$out/trace.csv
  awk -v n=$requests -v most=$length 'BEGIN { srand(7); print "t_s,in,out"
    for (i = 0; i < n; ++i) { rows = int(16 * exp(rand() * log(most / 16))); printf "%.2f,%d,1\n", i * 0.05, rows + 1 } }' > "$trace"
fi
run traffic stats "$trace"

step "tune for this shape and for the heaviest of the trace, and check what was saved"
tune="tune kernels/$kernel.tile --kernel $kernel --runs $runs --seed 1 --threads $threads"
run $tune --dim $dims,$own --out "$out"
run $tune --dim $dims --key-dim $keys --traffic "$trace" --policy pow2 --cases $shapes --out "$out/served"
run tune verify "$out/best.json"
run tune verify "$out/served/best.json"
config=$(python3 -c 'import json, sys; print(json.dumps(dict(json.load(open(sys.argv[1]))["buckets"][0]["config"])))' "$out/best.json")

step "its whole life beside the best rival, budget $budget"
may bench "$candidate" --op "$op" --config "$config" --threads $threads --budget $budget --model none --out "$out" ${references[@]+"${references[@]}"}

step "what re-validation takes, and people's hours"
may validate --matrix "$out/best.json" "$out/served/best.json" --candidate $name --threads $threads --out "$out"
run cost add --candidate $name --kind port --hours 6 --by "${USER:-the reader}" --note "declared for this case" --out "$out"

step "the same traffic, served: compiled on demand, from the saved winners only, adaptive"
replay() {
  may traffic replay "$trace" --candidate "$candidate" --op "$served" --dim $key --policy pow2 --limit $requests --threads $threads --out "$out" "$@"
}
replay --miss block
replay --serving pinned --best "$out/served/best.json"
replay --serving adaptive --telemetry "$out/telemetry.jsonl"

step "the verdict"
code=0
run decide "$out/objective.json" --out "$out" || code=$?
run report "$out"
exit $code
