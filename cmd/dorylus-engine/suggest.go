package main

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// synonyms are names that other trainers have for our flags.
var synonyms = map[string]string{
	"dataset": "data", "data-dir": "data", "input": "data", "graph": "data",
	"learning-rate": "lr", "l2": "weight-decay", "wd": "weight-decay", "decay": "weight-decay",
	"num-layers": "layers", "n-layers": "layers", "hidden-channels": "hidden", "hidden-dim": "hidden", "hidden-size": "hidden",
	"num-hidden": "hidden", "n-hidden": "hidden", "n-epochs": "epochs", "num-epochs": "epochs", "iterations": "epochs",
	"drop": "dropout", "feat-drop": "dropout", "arch": "model", "network": "model", "optim": "optimizer", "opt": "optimizer",
	"early-stopping": "patience", "num-runs": "runs", "repeat": "runs", "random-seed": "seed", "workers": "threads",
	"num-workers": "threads", "cores": "threads", "num-threads": "threads", "output": "out", "out-dir": "out", "output-dir": "out",
	"log-dir": "out", "checkpoint": "resume", "restore": "resume", "eval-steps": "eval-every", "log-every": "eval-every",
	"normalize-features": "features", "backend": "mode", "dtype": "precision", "quiet": "progress", "verbose": "progress",
	"budget": "max-cost", "cost-limit": "max-cost", "instance-type": "instance", "as": "instance",
}

// nearest is the known name that word was probably meant to be, or "".
func nearest(word string, known []string) string {
	word = strings.ToLower(strings.ReplaceAll(word, "_", "-"))
	best, least := "", 1+max(1, len(word)/3)
	consider := func(name, means string) {
		d := distance(word, name)
		if len(word) > 2 && strings.HasPrefix(name, word) {
			d = min(d, 1)
		}
		if d < least {
			best, least = means, d
		}
	}
	for _, k := range known {
		consider(k, k)
	}
	for _, name := range slices.Sorted(maps.Keys(synonyms)) {
		if means := synonyms[name]; slices.Contains(known, means) {
			consider(name, means)
		}
	}
	return best
}

// distance is the least number of insertions, deletions, replacements and swaps
// of neighbours that turn a into b.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			change := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			rows[i][j] = min(change, rows[i-1][j]+1, rows[i][j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}

// flagError turns what pflag says into one line with a suggestion.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var missing *pflag.ValueRequiredError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown):
		if word := unknown.GetSpecifiedShortnames(); word != "" {
			return unknownFlag(cmd, "-", word) // perhaps -epochs for --epochs
		}
		return unknownFlag(cmd, "--", unknown.GetSpecifiedName())
	case errors.As(err, &missing):
		name := missing.GetSpecifiedName()
		return usagef("--%s needs a value: --%s=%s", name, name, strings.ToUpper(cmd.Flags().Lookup(name).Value.Type()))
	case errors.As(err, &invalid):
		if inner := invalid.Unwrap(); inner != nil && strings.HasPrefix(inner.Error(), "--") {
			return usage(inner)
		}
		return usagef("--%s=%s: give %s", invalid.GetFlag().Name, invalid.GetValue(), kindOf(invalid.GetFlag()))
	}
	return usage(err)
}

// kindOf says what values a plain flag takes.
func kindOf(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "int":
		return "a whole number"
	case "uint64":
		return "a whole number from 0 on"
	case "bool":
		return "true or false"
	case "bytes":
		return "a number of bytes, as 512MiB or 4GB"
	}
	return "a " + f.Value.Type()
}

func unknownFlag(cmd *cobra.Command, dashes, name string) error {
	name, _, _ = strings.Cut(name, "=")
	var known []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
	if slices.Contains(known, name) {
		return usagef("unknown flag %s%s; write it with two dashes: --%s", dashes, name, name)
	}
	if off, ok := strings.CutPrefix(name, "no-"); ok && slices.Contains(known, off) {
		return usagef("unknown flag --%s; write --%s=false", name, off)
	}
	if near := nearest(name, known); near != "" {
		return usagef("unknown flag %s%s; did you mean --%s?", dashes, name, near)
	}
	return usagef("unknown flag %s%s; see %s --help", dashes, name, cmd.CommandPath())
}
