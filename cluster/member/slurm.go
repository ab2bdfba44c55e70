package member

import (
	"fmt"
	"strconv"
	"strings"
)

// slurm is a job step: srun numbers its tasks and lists its nodes. A batch script's own
// shell has most of these variables too, but no step.
func slurm(env vars, a Ask) (*found, error) {
	if env["SLURM_PROCID"] == "" {
		return nil, nil
	}
	size := env.first("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS")
	if size == "" {
		return nil, fmt.Errorf("SLURM_PROCID=%s, but SLURM_NTASKS is not set: start the servers by srun", env["SLURM_PROCID"])
	}
	rank, world, err := env.pair("SLURM_PROCID", size)
	if err != nil {
		return nil, err
	}
	f := &found{rank: rank, world: world, rankVar: "SLURM_PROCID=" + env["SLURM_PROCID"]}
	if env["SLURM_STEP_ID"] == "" && world > 1 {
		return nil, fmt.Errorf("%s, %s=%d, but SLURM_STEP_ID is not set: this is the shell of a batch script; put srun before the command", f.rankVar, size, world)
	}
	if env["SLURM_RESTART_COUNT"] != "" {
		if f.attempt, err = env.number("SLURM_RESTART_COUNT"); err != nil {
			return nil, err
		}
	}
	listVar := env.first("SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST")
	f.source = fmt.Sprintf("Slurm (%s, %s=%d, %s=%s)", f.rankVar, size, world, listVar, env[listVar])
	if listVar == "" {
		f.source = fmt.Sprintf("Slurm (%s, %s=%d)", f.rankVar, size, world)
		return f, nil
	}
	nodes, err := ExpandNodes(env[listVar])
	if err != nil {
		return nil, fmt.Errorf("%s=%s: %w", listVar, env[listVar], err)
	}
	hosts, err := tasksOn(nodes, world, env)
	if err != nil {
		return nil, err
	}
	f.place = places(hosts, a.port())
	if rank < world {
		for _, h := range hosts[:rank] {
			if h == hosts[rank] {
				f.local++
			}
		}
		if id := env["SLURM_NODEID"]; id != "" {
			if n, err := env.number("SLURM_NODEID"); err != nil || n >= len(nodes) || nodes[n] != hosts[rank] {
				return nil, fmt.Errorf("%s: SLURM_NODEID=%s, but by the order of tasks it runs on %s: start srun with --distribution=block", f.source, id, hosts[rank])
			}
		}
	}
	return f, nil
}

// tasksOn is the node of each task.
func tasksOn(nodes []string, world int, env vars) ([]string, error) {
	counts := make([]int, len(nodes))
	perVar := env.first("SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE")
	if perVar == "" {
		for i := range world { // evenly, the first nodes one more
			counts[i*len(nodes)/world]++
		}
	} else if err := parseCounts(env[perVar], counts); err != nil {
		return nil, fmt.Errorf("%s=%s: %w", perVar, env[perVar], err)
	}
	total := 0
	for _, c := range counts {
		total += c
	}
	if total != world {
		return nil, fmt.Errorf("%s=%s has %d tasks on %d nodes, but there are %d", perVar, env[perVar], total, len(nodes), world)
	}
	way, _, _ := strings.Cut(env["SLURM_DISTRIBUTION"], ":")
	way, _, _ = strings.Cut(strings.ToLower(way), ",")
	var hosts []string
	switch way {
	case "", "block", "unknown", "*":
		for i, n := range nodes {
			for range counts[i] {
				hosts = append(hosts, n)
			}
		}
	case "cyclic":
		for len(hosts) < world {
			for i, n := range nodes {
				if counts[i] > 0 {
					hosts = append(hosts, n)
					counts[i]--
				}
			}
		}
	default:
		return nil, fmt.Errorf("SLURM_DISTRIBUTION=%s: where the tasks run follows from block and cyclic only: start srun with --distribution=block", env["SLURM_DISTRIBUTION"])
	}
	return hosts, nil
}

// parseCounts reads "2(x3),1": three nodes of 2 tasks and one of 1.
func parseCounts(text string, counts []int) error {
	i := 0
	for _, part := range strings.Split(text, ",") {
		number, times := strings.TrimSpace(part), 1
		if head, rest, ok := strings.Cut(number, "(x"); ok {
			n, err := strconv.Atoi(strings.TrimSuffix(rest, ")"))
			if err != nil || n < 1 || !strings.HasSuffix(rest, ")") {
				return fmt.Errorf("%q is no count like 2(x3)", part)
			}
			number, times = head, n
		}
		n, err := strconv.Atoi(number)
		if err != nil || n < 0 || n > maxServers {
			return fmt.Errorf("%q is no count like 2(x3)", part)
		}
		if times > len(counts)-i {
			return fmt.Errorf("it counts tasks on more than %d nodes", len(counts))
		}
		for range times {
			counts[i] = n
			i++
		}
	}
	if i < len(counts) {
		return fmt.Errorf("it counts tasks on %d nodes of %d", i, len(counts))
	}
	return nil
}

// ExpandNodes lists the hosts of a Slurm node list, in its order:
// "gpu[01-03,7],login" is gpu01, gpu02, gpu03, gpu7, login, and "r[1-2]n[1-2]" r1n1,
// r1n2, r2n1, r2n2.
func ExpandNodes(list string) ([]string, error) {
	var all []string
	for _, item := range splitOutside(list) {
		if item == "" {
			return nil, fmt.Errorf("there is an empty name in it")
		}
		names, err := expandItem(item)
		if err != nil {
			return nil, err
		}
		if all = append(all, names...); len(all) > maxServers {
			return nil, fmt.Errorf("it lists more than %d nodes", maxServers)
		}
	}
	return all, nil
}

// splitOutside cuts at the commas that are in no brackets.
func splitOutside(list string) []string {
	var items []string
	depth, from := 0, 0
	for i := range len(list) {
		switch list[i] {
		case '[':
			depth++
		case ']':
			depth--
		case ',':
			if depth == 0 {
				items = append(items, strings.TrimSpace(list[from:i]))
				from = i + 1
			}
		}
	}
	return append(items, strings.TrimSpace(list[from:]))
}

// expandItem expands the brackets of one item, the first of them changing slowest.
func expandItem(item string) ([]string, error) {
	open := strings.IndexByte(item, '[')
	if open < 0 {
		if strings.IndexByte(item, ']') >= 0 {
			return nil, fmt.Errorf("%q closes a bracket that is not open", item)
		}
		return []string{item}, nil
	}
	length := strings.IndexByte(item[open:], ']')
	if length < 0 {
		return nil, fmt.Errorf("%q does not close its bracket", item)
	}
	head, inside, tail := item[:open], item[open+1:open+length], item[open+length+1:]
	if strings.ContainsAny(head, "]") || strings.ContainsAny(inside, "[") {
		return nil, fmt.Errorf("%q has a bracket in a bracket", item)
	}
	tails, err := expandItem(tail)
	if tail != "" && err != nil {
		return nil, err
	}
	var all []string
	for _, r := range strings.Split(inside, ",") {
		lo, hi, width, err := numbers(r)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", item, err)
		}
		if (hi-lo+1)*len(tails)+len(all) > maxServers {
			return nil, fmt.Errorf("%q lists more than %d nodes", item, maxServers)
		}
		for n := lo; n <= hi; n++ {
			for _, t := range tails {
				all = append(all, fmt.Sprintf("%s%0*d%s", head, width, n, t))
			}
		}
	}
	return all, nil
}

// numbers reads "7" or "008-011". Names keep the width of the lower number.
func numbers(text string) (lo, hi, width int, err error) {
	text = strings.TrimSpace(text)
	first, last, isRange := strings.Cut(text, "-")
	if !isRange {
		last = first
	}
	lo, err = digits(first)
	if err == nil {
		hi, err = digits(last)
	}
	switch {
	case err != nil:
		return 0, 0, 0, fmt.Errorf("%q is no number or range like 1-4", text)
	case hi < lo:
		return 0, 0, 0, fmt.Errorf("range %q goes downwards", text)
	case hi-lo >= maxServers:
		return 0, 0, 0, fmt.Errorf("range %q has more than %d numbers", text, maxServers)
	}
	return lo, hi, len(first), nil
}

func digits(text string) (int, error) {
	if text == "" || strings.Trim(text, "0123456789") != "" {
		return 0, strconv.ErrSyntax
	}
	return strconv.Atoi(text)
}
