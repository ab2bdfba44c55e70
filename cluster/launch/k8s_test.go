package launch

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"dorylus/cluster/member"
)

// set3 is a JobSet of v1alpha2, as far as we use it; the Jobs in it are Kubernetes' own.
type jobSet3 struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Network struct {
			EnableDNSHostnames       *bool `json:"enableDNSHostnames"`
			PublishNotReadyAddresses *bool `json:"publishNotReadyAddresses"`
		} `json:"network"`
		SuccessPolicy struct {
			Operator             string   `json:"operator"`
			TargetReplicatedJobs []string `json:"targetReplicatedJobs"`
		} `json:"successPolicy"`
		FailurePolicy struct {
			MaxRestarts     int32  `json:"maxRestarts"`
			RestartStrategy string `json:"restartStrategy"`
			Rules           []struct {
				Name                string   `json:"name"`
				Action              string   `json:"action"`
				OnJobFailureReasons []string `json:"onJobFailureReasons"`
			} `json:"rules"`
		} `json:"failurePolicy"`
		ReplicatedJobs []struct {
			Name     string                  `json:"name"`
			Replicas int32                   `json:"replicas"`
			Template batchv1.JobTemplateSpec `json:"template"`
		} `json:"replicatedJobs"`
	} `json:"spec"`
}

func sample() Kubernetes {
	return Kubernetes{
		Name: "reddit", Namespace: "ml", Image: "registry.example/dorylus:1", Program: "/dorylus-engine", API: JobSets, Graphs: 4, Params: 2, Port: 7070, MaxRestarts: 5,
		Ready: 10 * time.Minute, CertsSecret: "reddit-certs", DataClaim: "graphs", OutClaim: "runs", EnvSecret: "aws", CPU: "8", Memory: "64Gi", ParamCPU: "500m", GPUs: 2,
		NodeSelector: map[string]string{"pool": "c5n"}, Train: []string{"--data=/data/reddit", "--out=/out/RUN", "--model=gat"},
	}
}

// documents splits a manifest.
func documents(t *testing.T, k *Kubernetes) []string {
	t.Helper()
	text, err := k.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(text), "\n---\n")
}

func strict(t *testing.T, text string, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
}

func TestJobSet(t *testing.T) {
	k := sample()
	docs := documents(t, &k)
	if len(docs) != 1 {
		t.Fatalf("%d documents", len(docs))
	}
	var s jobSet3
	strict(t, docs[0], &s)
	if s.APIVersion != "jobset.x-k8s.io/v1alpha2" || s.Kind != "JobSet" || s.Name != "reddit" || s.Namespace != "ml" || s.Spec.FailurePolicy.MaxRestarts != 5 || !*s.Spec.Network.EnableDNSHostnames {
		t.Errorf("head of the JobSet:\n%s", docs[0])
	}
	for _, r := range s.Spec.FailurePolicy.Rules {
		if !regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`).MatchString(r.Name) {
			t.Errorf("rule %q has a name that JobSet refuses", r.Name)
		}
	}
	for i, want := range []struct {
		role  member.Role
		count int32
	}{{member.Graph, 4}, {member.Param, 2}} {
		r := s.Spec.ReplicatedJobs[i]
		if r.Name != string(want.role) || r.Replicas != 1 || *r.Template.Spec.BackoffLimit != 0 {
			t.Errorf("job %d: %+v", i, r)
		}
		checkJob(t, &k, want.role, &r.Template.Spec, want.count)
		env := map[string]string{"JOB_COMPLETION_INDEX": "1", "HOSTNAME": fmt.Sprintf("reddit-%s-0-1", want.role)}
		labels := map[string]string{"jobset-name": "reddit", "replicatedjob-name": r.Name, "job-index": "0", "restart-attempt": "2"}
		for _, v := range r.Template.Spec.Template.Spec.Containers[0].Env {
			env[v.Name] = labels[strings.TrimSuffix(strings.TrimPrefix(v.ValueFrom.FieldRef.FieldPath, "metadata.labels['jobset.sigs.k8s.io/"), "']")]
		}
		finds(t, &r.Template.Spec, want.role, env, "reddit-graph-0-3.reddit:7070", "reddit-param-0-1.reddit:7070", 2)
	}
}

func TestPlainJobs(t *testing.T) {
	k := sample()
	k.API, k.OutClaim, k.ServiceAccount = Jobs, "", "trainer"
	docs := documents(t, &k)
	if len(docs) != 3 {
		t.Fatalf("%d documents", len(docs))
	}
	var svc corev1.Service
	strict(t, docs[0], &svc)
	if svc.Kind != "Service" || svc.Spec.ClusterIP != corev1.ClusterIPNone || !svc.Spec.PublishNotReadyAddresses || svc.Name != "reddit" {
		t.Errorf("service:\n%s", docs[0])
	}
	for i, want := range []struct {
		role  member.Role
		count int32
	}{{member.Graph, 4}, {member.Param, 2}} {
		var j batchv1.Job
		strict(t, docs[i+1], &j)
		pod := j.Spec.Template
		if j.Name != "reddit-"+string(want.role) || *j.Spec.BackoffLimitPerIndex != 5 || *j.Spec.MaxFailedIndexes != 0 || pod.Spec.Subdomain != svc.Name || pod.Spec.ServiceAccountName != "trainer" {
			t.Errorf("job:\n%s", docs[i+1])
		}
		for key, value := range svc.Spec.Selector {
			if pod.Labels[key] != value {
				t.Errorf("the Service does not select the pods of %s", j.Name)
			}
		}
		checkJob(t, &k, want.role, &j.Spec, want.count)
		finds(t, &j.Spec, want.role, map[string]string{"JOB_COMPLETION_INDEX": "1", "HOSTNAME": j.Name + "-1"}, "reddit-graph-3.reddit:7070", "reddit-param-1.reddit:7070", 0)
	}
}

// finds starts member.Find as the container would, and checks the place it finds.
func finds(t *testing.T, j *batchv1.JobSpec, role member.Role, env map[string]string, lastGraph, lastParam string, attempt int) {
	t.Helper()
	a := member.Ask{Role: role, Rank: -1}
	for _, arg := range j.Template.Spec.Containers[0].Args {
		name, value, _ := strings.Cut(arg, "=")
		var err error
		switch name {
		case "--graphs":
			a.Graphs, err = member.ParsePeers(value)
		case "--params":
			a.Params, err = member.ParsePeers(value)
		case "--job":
			a.Job = value
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	m, err := member.Find(a, env)
	if err != nil {
		t.Fatal(err)
	}
	if m.Role != role || m.Rank != 1 || m.Graphs[len(m.Graphs)-1] != lastGraph || m.Params[len(m.Params)-1] != lastParam || m.Attempt != attempt {
		t.Errorf("%s finds %+v", role, m)
	}
}

// checkJob checks what every role's Job must have.
func checkJob(t *testing.T, k *Kubernetes, role member.Role, j *batchv1.JobSpec, count int32) {
	t.Helper()
	if *j.CompletionMode != batchv1.IndexedCompletion || *j.Completions != count || *j.Parallelism != count {
		t.Errorf("%s: %v, %d of %d at a time", role, *j.CompletionMode, *j.Completions, *j.Parallelism)
	}
	if r := j.PodFailurePolicy.Rules[0]; r.Action != batchv1.PodFailurePolicyActionFailJob || !slices.Equal(r.OnExitCodes.Values, []int32{1, 2}) || *r.OnExitCodes.ContainerName != string(role) {
		t.Errorf("%s: failure policy %+v", role, r)
	}
	p := j.Template.Spec
	c := p.Containers[0]
	if p.RestartPolicy != corev1.RestartPolicyNever || *p.TerminationGracePeriodSeconds != 120 || !*p.SecurityContext.RunAsNonRoot || *p.SecurityContext.RunAsUser == 0 {
		t.Errorf("%s: pod %+v", role, p)
	}
	if s := c.SecurityContext; *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || s.Capabilities.Drop[0] != "ALL" {
		t.Errorf("%s: container may do %+v", role, s)
	}
	for name, probe := range map[string]*corev1.Probe{"startup": c.StartupProbe, "liveness": c.LivenessProbe, "readiness": c.ReadinessProbe} {
		if probe.Exec == nil || !slices.Equal(probe.Exec.Command[:4], []string{k.Program, "serve", "health", string(role)}) || probe.FailureThreshold < 2 {
			t.Errorf("%s: %s probe %+v", role, name, probe)
		}
	}
	if got := int(c.StartupProbe.FailureThreshold) * int(c.StartupProbe.PeriodSeconds); got < int(k.Ready.Seconds()) {
		t.Errorf("%s: the startup probe gives up after %d s, before --ready-timeout", role, got)
	}
	mounts := map[string]string{}
	for _, m := range c.VolumeMounts {
		mounts[m.MountPath] = m.Name
	}
	for _, v := range p.Volumes {
		if !slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == v.Name }) {
			t.Errorf("%s: volume %s is not mounted", role, v.Name)
		}
	}
	graph := role == member.Graph
	if mounts[CertsFolder] == "" || (mounts[DataFolder] != "") != (graph && k.DataClaim != "") || (mounts[OutFolder] != "") != (graph && k.OutClaim != "") {
		t.Errorf("%s: mounts %v", role, mounts)
	}
	if slices.Contains(c.Args, "--model=gat") != graph || !slices.Contains(c.Args, "--continue") || c.EnvFrom[0].SecretRef.Name != "aws" {
		t.Errorf("%s: arguments %q, environment %v", role, c.Args, c.EnvFrom)
	}
	if graph && c.Resources.Limits.Memory().String() != "64Gi" || !graph && c.Resources.Requests.Cpu().String() != "500m" {
		t.Errorf("%s: resources %v", role, c.Resources)
	}
	if gpus, ok := c.Resources.Limits["nvidia.com/gpu"]; ok != graph || graph && gpus.String() != "2" {
		t.Errorf("%s: resources %v", role, c.Resources)
	}
}

func TestManifestRefuses(t *testing.T) {
	for want, change := range map[string]func(*Kubernetes){
		"--job=Reddit":                      func(k *Kubernetes) { k.Name = "Reddit" },
		"more than 63 characters":           func(k *Kubernetes) { k.Name = strings.Repeat("a", 55) },
		"--image=":                          func(k *Kubernetes) { k.Image = "" },
		"--api=pods: choose jobset or job":  func(k *Kubernetes) { k.API = "pods" },
		"--servers=0, --params=2":           func(k *Kubernetes) { k.Graphs = 0 },
		"--port=0":                          func(k *Kubernetes) { k.Port = 0 },
		"--max-restarts=-1":                 func(k *Kubernetes) { k.MaxRestarts = -1 },
		"--certs-secret: name the Secret":   func(k *Kubernetes) { k.CertsSecret = "" },
		"--memory=64 gigabytes: give a qua": func(k *Kubernetes) { k.Memory = "64 gigabytes" },
	} {
		k := sample()
		change(&k)
		if text, err := k.Manifest(); err == nil || !strings.Contains(err.Error(), want) || len(text) > 0 {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestWhatOutlivesAPod(t *testing.T) {
	k := sample()
	for out, want := range map[string]bool{"": true, "/out": true, "/out/RUN": true, "/outside": false, "RUN": false, "/out/../RUN": false, "s3://bucket/RUN": true} {
		if k.Kept(out) != want {
			t.Errorf("--out=%s: %v", out, !want)
		}
	}
}
