package launch

// What a manifest needs of Kubernetes' types, in the order of its fields. The tests decode
// the result with Kubernetes' own types, strictly; linking these would add 13 MB to the
// program and empty fields to the manifest.

type object struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
	Metadata   meta   `yaml:"metadata"`
	Spec       any    `yaml:"spec"`
}

type meta struct {
	Name        string            `yaml:"name,omitempty"`
	Namespace   string            `yaml:"namespace,omitempty"`
	Labels      map[string]string `yaml:"labels,omitempty"`
	Annotations map[string]string `yaml:"annotations,omitempty"`
}

type jobSetSpec struct {
	Network        network         `yaml:"network"`
	SuccessPolicy  successPolicy   `yaml:"successPolicy"`
	FailurePolicy  failurePolicy   `yaml:"failurePolicy"`
	ReplicatedJobs []replicatedJob `yaml:"replicatedJobs"`
}

type network struct {
	EnableDNSHostnames       bool `yaml:"enableDNSHostnames"`
	PublishNotReadyAddresses bool `yaml:"publishNotReadyAddresses"`
}

type successPolicy struct {
	Operator             string   `yaml:"operator"`
	TargetReplicatedJobs []string `yaml:"targetReplicatedJobs"`
}

type failurePolicy struct {
	MaxRestarts     int           `yaml:"maxRestarts"`
	RestartStrategy string        `yaml:"restartStrategy"`
	Rules           []failureRule `yaml:"rules"`
}

type failureRule struct {
	Name                string   `yaml:"name"`
	Action              string   `yaml:"action"`
	OnJobFailureReasons []string `yaml:"onJobFailureReasons"`
}

type replicatedJob struct {
	Name     string      `yaml:"name"`
	Replicas int         `yaml:"replicas"`
	Template jobTemplate `yaml:"template"`
}

type jobTemplate struct {
	Spec jobSpec `yaml:"spec"`
}

type jobSpec struct {
	CompletionMode       string      `yaml:"completionMode"`
	Completions          int         `yaml:"completions"`
	Parallelism          int         `yaml:"parallelism"`
	BackoffLimit         *int        `yaml:"backoffLimit,omitempty"`
	BackoffLimitPerIndex *int        `yaml:"backoffLimitPerIndex,omitempty"`
	MaxFailedIndexes     *int        `yaml:"maxFailedIndexes,omitempty"`
	PodFailurePolicy     podFailure  `yaml:"podFailurePolicy"`
	Template             podTemplate `yaml:"template"`
}

type podFailure struct {
	Rules []podFailureRule `yaml:"rules"`
}

type podFailureRule struct {
	Action      string    `yaml:"action"`
	OnExitCodes exitCodes `yaml:"onExitCodes"`
}

type exitCodes struct {
	ContainerName string `yaml:"containerName"`
	Operator      string `yaml:"operator"`
	Values        []int  `yaml:"values,flow"`
}

type podTemplate struct {
	Metadata meta    `yaml:"metadata"`
	Spec     podSpec `yaml:"spec"`
}

type podSpec struct {
	Subdomain                     string            `yaml:"subdomain,omitempty"`
	ServiceAccountName            string            `yaml:"serviceAccountName,omitempty"`
	AutomountServiceAccountToken  *bool             `yaml:"automountServiceAccountToken,omitempty"`
	RestartPolicy                 string            `yaml:"restartPolicy"`
	TerminationGracePeriodSeconds int               `yaml:"terminationGracePeriodSeconds"`
	NodeSelector                  map[string]string `yaml:"nodeSelector,omitempty"`
	SecurityContext               podSecurity       `yaml:"securityContext"`
	Containers                    []container       `yaml:"containers"`
	Volumes                       []volume          `yaml:"volumes"`
}

type podSecurity struct {
	RunAsNonRoot   bool    `yaml:"runAsNonRoot"`
	RunAsUser      int     `yaml:"runAsUser"`
	RunAsGroup     int     `yaml:"runAsGroup"`
	FSGroup        int     `yaml:"fsGroup"`
	SeccompProfile seccomp `yaml:"seccompProfile"`
}

type seccomp struct {
	Type string `yaml:"type"`
}

type container struct {
	Name            string            `yaml:"name"`
	Image           string            `yaml:"image"`
	Command         []string          `yaml:"command"`
	Args            []string          `yaml:"args"`
	Env             []envVar          `yaml:"env,omitempty"`
	EnvFrom         []envFrom         `yaml:"envFrom,omitempty"`
	Ports           []port            `yaml:"ports"`
	Resources       resources         `yaml:"resources"`
	StartupProbe    probe             `yaml:"startupProbe"`
	LivenessProbe   probe             `yaml:"livenessProbe"`
	ReadinessProbe  probe             `yaml:"readinessProbe"`
	SecurityContext containerSecurity `yaml:"securityContext"`
	VolumeMounts    []mount           `yaml:"volumeMounts"`
}

type envVar struct {
	Name      string  `yaml:"name"`
	ValueFrom envSpec `yaml:"valueFrom"`
}

type envSpec struct {
	FieldRef fieldRef `yaml:"fieldRef"`
}

type fieldRef struct {
	FieldPath string `yaml:"fieldPath"`
}

type envFrom struct {
	SecretRef named `yaml:"secretRef"`
}

type named struct {
	Name string `yaml:"name"`
}

type port struct {
	Name          string `yaml:"name"`
	ContainerPort int    `yaml:"containerPort"`
}

type resources struct {
	Requests map[string]string `yaml:"requests,omitempty"`
	Limits   map[string]string `yaml:"limits,omitempty"`
}

type probe struct {
	Exec             execAction `yaml:"exec"`
	PeriodSeconds    int        `yaml:"periodSeconds"`
	TimeoutSeconds   int        `yaml:"timeoutSeconds"`
	FailureThreshold int        `yaml:"failureThreshold"`
}

type execAction struct {
	Command []string `yaml:"command"`
}

type containerSecurity struct {
	AllowPrivilegeEscalation bool         `yaml:"allowPrivilegeEscalation"`
	ReadOnlyRootFilesystem   bool         `yaml:"readOnlyRootFilesystem"`
	Capabilities             capabilities `yaml:"capabilities"`
}

type capabilities struct {
	Drop []string `yaml:"drop,flow"`
}

type mount struct {
	Name      string `yaml:"name"`
	MountPath string `yaml:"mountPath"`
	ReadOnly  bool   `yaml:"readOnly,omitempty"`
}

type volume struct {
	Name     string        `yaml:"name"`
	EmptyDir *struct{}     `yaml:"emptyDir,omitempty"`
	Claim    *claimSource  `yaml:"persistentVolumeClaim,omitempty"`
	Secret   *secretSource `yaml:"secret,omitempty"`
}

type claimSource struct {
	ClaimName string `yaml:"claimName"`
	ReadOnly  bool   `yaml:"readOnly,omitempty"`
}

type secretSource struct {
	SecretName  string `yaml:"secretName"`
	DefaultMode int    `yaml:"defaultMode"`
}

type serviceSpec struct {
	ClusterIP                string            `yaml:"clusterIP"`
	PublishNotReadyAddresses bool              `yaml:"publishNotReadyAddresses"`
	Selector                 map[string]string `yaml:"selector"`
	Ports                    []servicePort     `yaml:"ports"`
}

type servicePort struct {
	Name string `yaml:"name"`
	Port int    `yaml:"port"`
}
