//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	serviceRange = "10.96.0.0/16"
	serviceAddr  = "10.96.0.1" // of the Service "kubernetes": the first of the range
	podRange     = "10.244.0.0/16"
	// startLimit bounds the start of the control plane: 4 s on a quiet machine, more than 120 s seen on two cores at a load of 33.
	startLimit = 5 * time.Minute
)

// ControlPlaneOptions of StartControlPlane.
type ControlPlaneOptions struct {
	APIServerArgs         []string // added to kube-apiserver's
	ControllerManagerArgs []string // added to kube-controller-manager's
	// Audit has every write of our kinds recorded, at level Metadata, in ControlPlane.AuditLog.
	Audit bool
}

// ControlPlane is a Kubernetes API server with what it needs, or the user's own cluster.
type ControlPlane struct {
	Kubeconfig  string // path; cluster administrator
	KubectlPath string
	External    bool   // the cluster of the user's KUBECONFIG: nothing was started
	AuditLog    string // path; empty without Audit

	lab       *Lab
	config    *rest.Config
	client    kubernetes.Interface
	bin       *binaries
	pki       *clusterPKI
	etcd      string   // URL
	args      []string // kube-apiserver's
	endpoint  netip.AddrPort
	apiserver *Program
}

// StartControlPlane starts etcd, kube-apiserver and, where it is among the binaries, kube-controller-manager, and
// returns when clients can work. With KUBECONFIG in the environment that cluster is taken and nothing is started.
func (l *Lab) StartControlPlane(ctx context.Context, o ControlPlaneOptions) (*ControlPlane, error) {
	if err := l.errClosed(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if path := os.Getenv("KUBECONFIG"); path != "" {
		return l.externalControlPlane(ctx, path)
	}
	bin, err := findBinaries(ctx, l.root)
	if err != nil {
		return nil, err
	}
	port, err := freePort(l.Addr(), 6443)
	if err != nil {
		return nil, err
	}
	c := &ControlPlane{lab: l, bin: bin, KubectlPath: bin.path("kubectl"), endpoint: netip.AddrPortFrom(l.Addr(), port)}
	c.pki, err = newClusterPKI(l.state.path("pki"), net.IP(l.Addr().AsSlice()), net.ParseIP(serviceAddr), time.Now())
	if err != nil {
		return nil, err
	}
	if c.Kubeconfig, err = c.certificateKubeconfig("admin", "lab-admin", "system:masters"); err != nil {
		return nil, err
	}
	if err := c.connect(); err != nil {
		return nil, err
	}
	if c.etcd, err = c.startEtcd(); err != nil {
		return nil, err
	}
	audit, err := c.auditArgs(o.Audit)
	if err != nil {
		return nil, err
	}
	c.args = slices.Concat(c.apiServerArgs(c.etcd), audit, o.APIServerArgs)
	if err := c.StartAPIServer(ctx); err != nil {
		return nil, err
	}
	return c, c.startControllerManager(ctx, o.ControllerManagerArgs)
}

func (l *Lab) externalControlPlane(ctx context.Context, path string) (*ControlPlane, error) {
	kubectl, err := findKubectl(ctx, l.root)
	if err != nil {
		return nil, err
	}
	c := &ControlPlane{lab: l, Kubeconfig: path, KubectlPath: kubectl, External: true}
	if err := c.connect(); err != nil {
		return nil, err
	}
	if err := c.readyz(ctx); err != nil {
		return nil, fmt.Errorf("asking the cluster of KUBECONFIG=%s: %w", path, err)
	}
	return c, nil
}

func (c *ControlPlane) connect() error {
	var err error
	if c.config, err = clientcmd.BuildConfigFromFlags("", c.Kubeconfig); err != nil {
		return fmt.Errorf("reading %s: %w", c.Kubeconfig, err)
	}
	c.config.QPS, c.config.Burst = 200, 400 // the client's default of 5 a second makes tests wait for nothing
	if c.client, err = kubernetes.NewForConfig(c.config); err != nil {
		return fmt.Errorf("reading %s: %w", c.Kubeconfig, err)
	}
	return nil
}

// RESTConfig is the administrator's, a copy.
func (c *ControlPlane) RESTConfig() *rest.Config { return rest.CopyConfig(c.config) }

// Client is the administrator's typed client.
func (c *ControlPlane) Client() kubernetes.Interface { return c.client }

// Etcd is where a second API server may keep its objects, with the paths of what it needs for that.
type Etcd struct {
	URL, CA, Certificate, Key string
}

// Etcd is the control plane's own; each API server takes a prefix of its own there.
func (c *ControlPlane) Etcd() (Etcd, error) {
	if c.External {
		return Etcd{}, errors.New("the cluster is the user's own (KUBECONFIG): its etcd is left alone")
	}
	return Etcd{
		URL: c.etcd, CA: c.pki.path("etcd-ca.crt"), Certificate: c.pki.path("apiserver-etcd.crt"), Key: c.pki.path("apiserver-etcd.key"),
	}, nil
}

// startEtcd returns the client URL.
func (c *ControlPlane) startEtcd() (string, error) {
	loopback := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	clients, err := freePort(loopback, 0)
	if err != nil {
		return "", err
	}
	peers, err := freePort(loopback, 0)
	if err != nil {
		return "", err
	}
	url := "https://" + netip.AddrPortFrom(loopback, clients).String()
	peer := "https://" + netip.AddrPortFrom(loopback, peers).String()
	_, err = c.lab.StartProgram("etcd", exec.Command(c.bin.path("etcd"),
		"--name=lab", "--data-dir="+c.lab.state.path("etcd"), "--unsafe-no-fsync", "--logger=zap", "--log-level=warn",
		"--listen-client-urls="+url, "--advertise-client-urls="+url,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=lab="+peer,
		"--cert-file="+c.pki.path("etcd.crt"), "--key-file="+c.pki.path("etcd.key"),
		"--trusted-ca-file="+c.pki.path("etcd-ca.crt"), "--client-cert-auth",
		"--peer-cert-file="+c.pki.path("etcd.crt"), "--peer-key-file="+c.pki.path("etcd.key"),
		"--peer-trusted-ca-file="+c.pki.path("etcd-ca.crt"), "--peer-client-cert-auth",
	))
	return url, err
}

func (c *ControlPlane) apiServerArgs(etcd string) []string {
	addr, port := c.endpoint.Addr().String(), strconv.Itoa(int(c.endpoint.Port()))
	return []string{
		"--bind-address=" + addr, "--advertise-address=" + addr, "--secure-port=" + port,
		"--etcd-servers=" + etcd, "--etcd-cafile=" + c.pki.path("etcd-ca.crt"),
		"--etcd-certfile=" + c.pki.path("apiserver-etcd.crt"), "--etcd-keyfile=" + c.pki.path("apiserver-etcd.key"),
		"--tls-cert-file=" + c.pki.path("apiserver.crt"), "--tls-private-key-file=" + c.pki.path("apiserver.key"),
		"--client-ca-file=" + c.pki.path("ca.crt"),
		"--authorization-mode=Node,RBAC", "--anonymous-auth=false", "--enable-bootstrap-token-auth=true",
		"--enable-admission-plugins=NodeRestriction", "--profiling=false", "--allow-privileged=true",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + c.pki.path("sa.pub"), "--service-account-signing-key-file=" + c.pki.path("sa.key"),
		"--service-cluster-ip-range=" + serviceRange,
		"--kubelet-client-certificate=" + c.pki.path("apiserver-kubelet.crt"),
		"--kubelet-client-key=" + c.pki.path("apiserver-kubelet.key"), "--kubelet-preferred-address-types=InternalIP",
		"--requestheader-client-ca-file=" + c.pki.path("front-proxy-ca.crt"), "--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + c.pki.path("front-proxy.crt"), "--proxy-client-key-file=" + c.pki.path("front-proxy.key"),
		// There is no kube-proxy on this machine: the API server must call endpoints, not service addresses, which
		// would leave by the default route.
		"--enable-aggregator-routing=true",
	}
}

// StartAPIServer starts kube-apiserver, again after StopAPIServer, and returns when it is ready.
func (c *ControlPlane) StartAPIServer(ctx context.Context) error {
	if c.External {
		return errors.New("the cluster is the user's own (KUBECONFIG): its API server is left alone")
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	p, err := c.lab.StartProgram("kube-apiserver", exec.Command(c.bin.path("kube-apiserver"), c.args...))
	if err != nil {
		return err
	}
	c.apiserver = p
	if err := until(ctx, p, "/readyz of the API server", func() error { return c.readyz(ctx) }); err != nil {
		return err
	}
	for _, ns := range []string{"default", "kube-system", "kube-public", "kube-node-lease"} { // made after /readyz
		if err := until(ctx, p, "namespace "+ns, func() error { return c.namespaceExists(ctx, ns) }); err != nil {
			return err
		}
	}
	return nil
}

// APIServer is the process that runs now; nil where the cluster is the user's own.
func (c *ControlPlane) APIServer() *Program { return c.apiserver }

// StopAPIServer stops kube-apiserver; etcd keeps the data.
func (c *ControlPlane) StopAPIServer() error {
	if c.External {
		return errors.New("the cluster is the user's own (KUBECONFIG): its API server is left alone")
	}
	return c.apiserver.Stop()
}

// HasControllers says whether the lab's own kube-controller-manager runs: it signs certificates, and cleans up.
func (c *ControlPlane) HasControllers() bool {
	return !c.External && c.bin.has("kube-controller-manager")
}

func (c *ControlPlane) startControllerManager(ctx context.Context, more []string) error {
	if !c.HasControllers() {
		return nil // KUBEBUILDER_ASSETS of setup-envtest has none
	}
	kubeconfig, err := c.certificateKubeconfig("controller-manager", "system:kube-controller-manager")
	if err != nil {
		return err
	}
	p, err := c.lab.StartProgram("kube-controller-manager", exec.Command(c.bin.path("kube-controller-manager"), append([]string{
		"--kubeconfig=" + kubeconfig, "--secure-port=0", "--leader-elect=false", "--use-service-account-credentials=true",
		"--controllers=*,bootstrap-signer-controller,token-cleaner-controller",
		"--cluster-signing-cert-file=" + c.pki.path("ca.crt"), "--cluster-signing-key-file=" + c.pki.path("ca.key"),
		"--root-ca-file=" + c.pki.path("ca.crt"), "--service-account-private-key-file=" + c.pki.path("sa.key"),
		"--allocate-node-cidrs=true", "--cluster-cidr=" + podRange, "--service-cluster-ip-range=" + serviceRange,
		"--kube-api-qps=200", "--kube-api-burst=400", // with the defaults it throttles itself for 6 s at start
	}, more...)...))
	if err != nil {
		return err
	}
	return until(ctx, p, "the default ServiceAccount", func() error { return c.serviceAccountExists(ctx, "default", "default") })
}

// freePort finds a port on the address: the wanted one, else one below the range from which the kernel picks for
// outgoing connections, so that none of those takes it before the program does.
func freePort(addr netip.Addr, want uint16) (uint16, error) {
	ports := make([]uint16, 0, tries+1)
	if want != 0 {
		ports = append(ports, want)
	}
	for range tries {
		b := randomSerial()
		ports = append(ports, 10000+(uint16(b[1])<<8|uint16(b[2]))%20000)
	}
	for _, port := range ports {
		ln, err := net.Listen("tcp", netip.AddrPortFrom(addr, port).String())
		if err != nil {
			continue
		}
		return port, ln.Close()
	}
	return 0, fmt.Errorf("finding a free port on %s: none of %d tried", addr, len(ports))
}
