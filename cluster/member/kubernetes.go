package member

import (
	"fmt"
	"net"
	"strconv"
	"strings"
)

// Variables that a JobSet's pods get by the downward API, as the manifest of `launch
// k8s` has them: Kubernetes itself only sets JOB_COMPLETION_INDEX.
const (
	JobSetName    = "JOBSET_NAME"
	ReplicatedJob = "REPLICATED_JOB_NAME"
	JobSetIndex   = "JOB_INDEX"
	JobSetRestart = "JOBSET_RESTART_ATTEMPT"
	completion    = "JOB_COMPLETION_INDEX"
	inKubernetes  = "KUBERNETES_SERVICE_HOST"
)

// jobSet has one Job of many pods per role, called graph and param: its hosts are
// SET-ROLE-0-POD.SET.
func jobSet(env vars, a Ask) (*found, error) {
	if env[JobSetName] == "" {
		return nil, nil
	}
	if env[completion] == "" {
		return nil, fmt.Errorf("%s=%s, but %s is not set: give the Job completionMode Indexed", JobSetName, env[JobSetName], completion)
	}
	rank, err := env.number(completion)
	if err != nil {
		return nil, err
	}
	role, err := roleNamed(ReplicatedJob, env[ReplicatedJob])
	if err != nil {
		return nil, err
	}
	f := &found{role: role, rank: rank, rankVar: completion + "=" + env[completion]}
	f.source = fmt.Sprintf("JobSet (%s=%s, %s=%s, %s)", JobSetName, env[JobSetName], ReplicatedJob, role, f.rankVar)
	if env[JobSetIndex] != "" && env[JobSetIndex] != "0" {
		return nil, fmt.Errorf("%s: %s=%s: a role is one Job of many pods; set replicas to 1 and parallelism to the number of servers", f.source, JobSetIndex, env[JobSetIndex])
	}
	if env[JobSetRestart] != "" {
		if f.attempt, err = env.number(JobSetRestart); err != nil {
			return nil, err
		}
	}
	set := env[JobSetName]
	f.addr = func(r Role, rank int) string { return hostPort(fmt.Sprintf("%s-%s-0-%d.%s", set, r, rank, set), a) }
	return f, nil
}

// indexedJob is a Job per role, JOB-graph and JOB-param, and a headless Service JOB: its
// hosts are JOB-ROLE-INDEX.JOB. Only the job's own name is not in a variable, but the
// host name has it.
func indexedJob(env vars, a Ask) (*found, error) {
	if env[completion] == "" {
		return nil, nil
	}
	rank, err := env.number(completion)
	if err != nil {
		return nil, err
	}
	f := &found{rank: rank, rankVar: completion + "=" + env[completion]}
	return byHostName(f, "Indexed Job", env, a)
}

// statefulSet is known by the host name alone: SET-graph-3.
func statefulSet(env vars, a Ask) (*found, error) {
	if env[inKubernetes] == "" {
		return nil, nil
	}
	_, rank, ok := ordinal(env["HOSTNAME"])
	if !ok {
		return nil, nil
	}
	f := &found{rank: rank, rankVar: "HOSTNAME=" + env["HOSTNAME"]}
	return byHostName(f, "StatefulSet", env, a)
}

// byHostName finishes what has hosts called NAME-ROLE-INDEX of a Service NAME.
func byHostName(f *found, kind string, env vars, a Ask) (*found, error) {
	host := env["HOSTNAME"]
	f.source = fmt.Sprintf("%s (%s, HOSTNAME=%s)", kind, f.rankVar, host)
	if kind == "StatefulSet" {
		f.source = fmt.Sprintf("%s (%s)", kind, f.rankVar)
	}
	name, n, ok := ordinal(host)
	if !ok || n != f.rank {
		return nil, fmt.Errorf("%s: the host name does not end with the index: leave the pod's hostname to Kubernetes", f.source)
	}
	job, role, ok := cutLast(name, "-")
	if !ok {
		role = ""
	}
	r, err := roleNamed("HOSTNAME", role)
	if err != nil {
		return nil, fmt.Errorf("%s: name the two sets of servers NAME-graph and NAME-param", f.source)
	}
	f.role = r
	service := a.Job
	if service == "" {
		service = job
	}
	f.addr = func(r Role, rank int) string { return hostPort(fmt.Sprintf("%s-%s-%d.%s", job, r, rank, service), a) }
	return f, nil
}

func hostPort(host string, a Ask) string { return net.JoinHostPort(host, strconv.Itoa(a.port())) }

func cutLast(s, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

func roleNamed(variable, text string) (Role, error) {
	if r := Role(text); r == Graph || r == Param {
		return r, nil
	}
	return "", fmt.Errorf("%s=%s: it has to be %s or %s", variable, text, Graph, Param)
}
