package launch

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"dorylus/cluster/member"
)

// Folders of a server's container.
const (
	CertsFolder = "/certs"
	DataFolder  = "/data"
	OutFolder   = "/out"
)

// Values of Kubernetes.API.
const (
	JobSets = "jobset"
	Jobs    = "job"
)

const (
	runLabel  = "dorylus.dev/run"
	roleLabel = "dorylus.dev/role"
	nonRoot   = 65532
	stopGrace = 120 // seconds from SIGTERM on for the checkpoint
)

// Kubernetes is a run there: a JobSet, or where its controller is not installed two
// Indexed Jobs and a headless Service.
type Kubernetes struct {
	Name, Namespace, Image string
	Program                string // in the image
	API                    string // JobSets or Jobs
	Graphs, Params         int
	Port                   int
	MaxRestarts            int
	// Ready is how long servers may take to find each other.
	Ready time.Duration
	// CertsSecret has the files of `certs dev`; it is mounted as CertsFolder.
	CertsSecret string
	// DataClaim and OutClaim are PersistentVolumeClaims, mounted as DataFolder, read-only,
	// and OutFolder, in graph servers. EnvSecret's keys become variables, for s3://.
	DataClaim, OutClaim, EnvSecret, ServiceAccount string
	CPU, Memory, ParamCPU, ParamMemory             string // quantities; "": not asked for
	GPUs                                           int    // of a graph server, as the limit nvidia.com/gpu; 0: none
	NodeSelector                                   map[string]string
	Common, Train                                  []string // flags of all servers, and of graph servers
}

var (
	labelName = regexp.MustCompile(`^[a-z]([-a-z0-9]*[a-z0-9])?$`)
	quantity  = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?(m|k|Ki|M|Mi|G|Gi|T|Ti)?$`)
)

// check reports everything that the API server would refuse, or worse, would not.
func (k *Kubernetes) check() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	last := fmt.Sprintf("%s-%s-0-%d", k.Name, member.Graph, max(k.Graphs, k.Params)-1)
	switch {
	case !labelName.MatchString(k.Name):
		bad("--job=%s: give a name of small letters, digits and dashes", k.Name)
	case len(last) > 63:
		bad("--job=%s: host names such as %s would have more than 63 characters", k.Name, last)
	}
	if k.Image == "" || strings.ContainsAny(k.Image, " \t\n") {
		bad("--image=%s: name the image that has the program", k.Image)
	}
	if k.API != JobSets && k.API != Jobs {
		bad("--api=%s: choose %s or %s", k.API, JobSets, Jobs)
	}
	if k.Graphs < 1 || k.Params < 1 {
		bad("--servers=%d, --params=%d: give 1 or more of each", k.Graphs, k.Params)
	}
	if k.Port < 1 || k.Port > 65535 {
		bad("--port=%d: give 1 to 65535", k.Port)
	}
	if k.MaxRestarts < 0 {
		bad("--max-restarts=%d: give 0 or more", k.MaxRestarts)
	}
	if k.CertsSecret == "" {
		bad("--certs-secret: name the Secret with the files of dorylus-engine certs dev; servers on different machines never talk in plain text")
	}
	for _, q := range []struct{ flag, value string }{{"cpu", k.CPU}, {"memory", k.Memory}, {"param-cpu", k.ParamCPU}, {"param-memory", k.ParamMemory}} {
		if q.value != "" && !quantity.MatchString(q.value) {
			bad("--%s=%s: give a quantity as 500m, 4 or 16Gi", q.flag, q.value)
		}
	}
	if k.GPUs < 0 {
		bad("--gpus=%d: give 0 or more", k.GPUs)
	}
	return errors.Join(errs...)
}

// Manifest is the run as YAML, for kubectl apply -f -.
func (k *Kubernetes) Manifest() ([]byte, error) {
	if err := k.check(); err != nil {
		return nil, err
	}
	objects := []object{k.jobSet()}
	if k.API == Jobs {
		objects = []object{k.service(), k.job(member.Graph), k.job(member.Param)}
	}
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	for _, o := range objects {
		if err := enc.Encode(o); err != nil {
			return nil, fmt.Errorf("write the manifest: %w", err)
		}
	}
	if err := enc.Close(); err != nil {
		return nil, fmt.Errorf("write the manifest: %w", err)
	}
	return b.Bytes(), nil
}

func (k *Kubernetes) labels(r member.Role) map[string]string {
	l := map[string]string{"app.kubernetes.io/name": "dorylus", runLabel: k.Name}
	if r != "" {
		l[roleLabel] = string(r)
	}
	return l
}

func (k *Kubernetes) meta(name string, r member.Role) meta {
	return meta{Name: name, Namespace: k.Namespace, Labels: k.labels(r)}
}

// jobSet restarts all Jobs when one fails, unless the program said that trying again is
// of no use.
func (k *Kubernetes) jobSet() object {
	s := jobSetSpec{
		Network:       network{EnableDNSHostnames: true, PublishNotReadyAddresses: true},
		SuccessPolicy: successPolicy{Operator: "All", TargetReplicatedJobs: []string{string(member.Graph)}},
		// No server of an attempt may be there when those of the next look for each other.
		FailurePolicy: failurePolicy{k.MaxRestarts, "BlockingRecreate", []failureRule{{"final", "FailJobSet", []string{"PodFailurePolicy"}}}},
	}
	for _, r := range []member.Role{member.Graph, member.Param} {
		s.ReplicatedJobs = append(s.ReplicatedJobs, replicatedJob{string(r), 1, jobTemplate{k.jobSpec(r)}})
	}
	return object{"jobset.x-k8s.io/v1alpha2", "JobSet", k.meta(k.Name, ""), s}
}

func (k *Kubernetes) job(r member.Role) object {
	return object{"batch/v1", "Job", k.meta(k.Name+"-"+string(r), r), k.jobSpec(r)}
}

// service gives the pods of the Jobs their names. They have to find each other before
// they are ready.
func (k *Kubernetes) service() object {
	return object{"v1", "Service", k.meta(k.Name, ""), serviceSpec{"None", true, map[string]string{runLabel: k.Name}, []servicePort{{"grpc", k.Port}}}}
}

func (k *Kubernetes) count(r member.Role) int {
	if r == member.Param {
		return k.Params
	}
	return k.Graphs
}

// jobSpec is the Job of a role. Exit codes 1 and 2 are final; after any other a server is
// started again: within a JobSet with all others, else by itself, and since the others
// end with 75 when they miss one, all of them meet again.
func (k *Kubernetes) jobSpec(r member.Role) jobSpec {
	n := k.count(r)
	s := jobSpec{CompletionMode: "Indexed", Completions: n, Parallelism: n, Template: podTemplate{meta{Labels: k.labels(r)}, k.podSpec(r)}}
	s.PodFailurePolicy = podFailure{[]podFailureRule{{"FailJob", exitCodes{string(r), "In", []int{1, exitUsage}}}}}
	if k.API == Jobs {
		s.BackoffLimitPerIndex, s.MaxFailedIndexes = new(k.MaxRestarts), new(0)
	} else {
		s.BackoffLimit = new(0)
	}
	return s
}

func (k *Kubernetes) podSpec(r member.Role) podSpec {
	p := podSpec{
		ServiceAccountName: k.ServiceAccount, RestartPolicy: "Never", TerminationGracePeriodSeconds: stopGrace, NodeSelector: k.NodeSelector,
		SecurityContext: podSecurity{true, nonRoot, nonRoot, nonRoot, seccomp{"RuntimeDefault"}},
		Volumes: []volume{
			{Name: "certs", Secret: &secretSource{k.CertsSecret, 0o440}},
			{Name: "tmp", EmptyDir: &struct{}{}},
		},
	}
	if k.ServiceAccount == "" {
		p.AutomountServiceAccountToken = new(false)
	}
	if k.API == Jobs {
		p.Subdomain = k.Name
	}
	c := k.container(r)
	if r == member.Graph {
		if k.DataClaim != "" {
			p.Volumes = append(p.Volumes, volume{Name: "data", Claim: &claimSource{k.DataClaim, true}})
			c.VolumeMounts = append(c.VolumeMounts, mount{"data", DataFolder, true})
		}
		if k.OutClaim != "" {
			p.Volumes = append(p.Volumes, volume{Name: "out", Claim: &claimSource{k.OutClaim, false}})
			c.VolumeMounts = append(c.VolumeMounts, mount{"out", OutFolder, false})
		}
	}
	p.Containers = []container{c}
	return p
}

// container runs the program. Kubernetes' own gRPC probe speaks plain text only, so the
// program asks its own health service, with the server's certificate.
func (k *Kubernetes) container(r member.Role) container {
	common := []string{fmt.Sprintf("--port=%d", k.Port), "--certs=" + CertsFolder}
	who := []string{fmt.Sprintf("--graphs=%d", k.Graphs), fmt.Sprintf("--params=%d", k.Params), "--job=" + k.Name}
	c := container{
		Name: string(r), Image: k.Image, Command: []string{k.Program},
		Args:            append(append(append([]string{"serve", string(r)}, who...), common...), "--continue", "--ready-timeout="+k.Ready.String()),
		Ports:           []port{{"grpc", k.Port}},
		SecurityContext: containerSecurity{false, true, capabilities{[]string{"ALL"}}},
		VolumeMounts:    []mount{{"certs", CertsFolder, true}, {"tmp", "/tmp", false}},
	}
	c.Args = append(c.Args, k.Common...)
	cpu, memory, gpus := k.ParamCPU, k.ParamMemory, 0
	if r == member.Graph {
		c.Args = append(c.Args, k.Train...)
		cpu, memory, gpus = k.CPU, k.Memory, k.GPUs
	}
	c.Resources = limits(cpu, memory, gpus)
	if k.EnvSecret != "" {
		c.EnvFrom = []envFrom{{named{k.EnvSecret}}}
	}
	if k.API == JobSets {
		for _, v := range []struct{ name, label string }{
			{member.JobSetName, "jobset-name"}, {member.ReplicatedJob, "replicatedjob-name"}, {member.JobSetIndex, "job-index"}, {member.JobSetRestart, "restart-attempt"},
		} {
			c.Env = append(c.Env, envVar{v.name, envSpec{fieldRef{"metadata.labels['jobset.sigs.k8s.io/" + v.label + "']"}}})
		}
	}
	ask := execAction{append(append([]string{k.Program, "serve", "health", string(r)}, who...), common...)}
	c.StartupProbe = probe{ask, 5, 5, max(6, int(k.Ready/(5*time.Second)))}
	c.ReadinessProbe = probe{ask, 15, 5, 2}
	c.LivenessProbe = probe{ask, 30, 10, 4}
	return c
}

// limits are requests, and memory as the limit too: a server that exceeds it is killed
// and named, instead of taking others with it. GPUs are a limit alone, which requests them.
func limits(cpu, memory string, gpus int) resources {
	r := resources{Requests: map[string]string{}, Limits: map[string]string{}}
	if cpu != "" {
		r.Requests["cpu"] = cpu
	}
	if memory != "" {
		r.Requests["memory"], r.Limits["memory"] = memory, memory
	}
	if gpus > 0 {
		r.Limits["nvidia.com/gpu"] = strconv.Itoa(gpus)
	}
	return r
}

// Kept says whether what is written to out outlives a pod.
func (k *Kubernetes) Kept(out string) bool {
	return out == "" || strings.Contains(out, "://") || k.OutClaim != "" && strings.HasPrefix(path.Clean(out)+"/", OutFolder+"/")
}
