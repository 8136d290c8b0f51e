//go:build linux

package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// tokenSeconds is the life of a token of ServiceAccountKubeconfig: a demo stays up over a day.
const tokenSeconds = 24 * 60 * 60

// certificateKubeconfig issues a client certificate and writes a kubeconfig with it.
func (c *ControlPlane) certificateKubeconfig(file, name string, orgs ...string) (string, error) {
	cert, key, err := c.pki.cluster.issue(leaf{file: "client-" + file, name: name, orgs: orgs, client: true})
	if err != nil {
		return "", err
	}
	cluster := &clientcmdapi.Cluster{Server: "https://" + c.endpoint.String(), CertificateAuthorityData: c.pki.cluster.pem()}
	return c.writeKubeconfig(file, cluster, &clientcmdapi.AuthInfo{ClientCertificateData: cert, ClientKeyData: key})
}

// ServiceAccountKubeconfig asks for a token of an existing ServiceAccount and returns the path of a kubeconfig with
// it: the rights are those that the manifests give it, no more.
func (c *ControlPlane) ServiceAccountKubeconfig(ctx context.Context, namespace, name string) (string, error) {
	seconds := int64(tokenSeconds)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	got, err := c.client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, request, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("asking for a token of ServiceAccount %s/%s: %w", namespace, name, err)
	}
	ca, err := c.CA()
	if err != nil {
		return "", err
	}
	cluster := &clientcmdapi.Cluster{Server: c.config.Host, CertificateAuthorityData: ca, TLSServerName: c.config.ServerName}
	return c.writeKubeconfig("sa-"+namespace+"-"+name, cluster, &clientcmdapi.AuthInfo{Token: got.Status.Token})
}

// CA is the API server's CA bundle, PEM.
func (c *ControlPlane) CA() ([]byte, error) {
	if len(c.config.CAData) > 0 || c.config.CAFile == "" {
		return c.config.CAData, nil
	}
	ca, err := os.ReadFile(c.config.CAFile)
	if err != nil {
		return nil, fmt.Errorf("reading the cluster's CA: %w", err)
	}
	return ca, nil
}

func (c *ControlPlane) writeKubeconfig(file string, cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) (string, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters["hostwarrant-lab"] = cluster
	config.AuthInfos[file] = user
	config.Contexts["hostwarrant-lab"] = &clientcmdapi.Context{Cluster: "hostwarrant-lab", AuthInfo: file}
	config.CurrentContext = "hostwarrant-lab"
	path := c.lab.state.path("kubeconfig-" + file)
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return "", fmt.Errorf("writing %s: %w", path, err)
	}
	return path, nil
}

// Result of a program that ran to its end.
type Result struct {
	Stdout, Stderr string
	Code           int
}

// Kubectl runs kubectl as the administrator. A non-zero exit is no error: it is in the result.
func (c *ControlPlane) Kubectl(ctx context.Context, stdin io.Reader, args ...string) (Result, error) {
	return c.KubectlAs(ctx, c.Kubeconfig, stdin, args...)
}

// KubectlAs runs kubectl with another kubeconfig.
func (c *ControlPlane) KubectlAs(ctx context.Context, kubeconfig string, stdin io.Reader, args ...string) (Result, error) {
	cmd := exec.CommandContext(ctx, c.KubectlPath, args...)
	cmd.Stdin = stdin
	// Its cache must not go to the user's ~/.kube.
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "KUBECACHEDIR="+c.lab.state.path("kubectl-cache"))
	return run(cmd)
}

func run(cmd *exec.Cmd) (Result, error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	r := Result{Stdout: stdout.String(), Stderr: stderr.String()}
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Exited() {
		r.Code, err = exit.ExitCode(), nil
	}
	if err != nil {
		return r, fmt.Errorf("running %s: %w", cmd.Path, err)
	}
	return r, nil
}

func (c *ControlPlane) readyz(ctx context.Context) error {
	b, err := c.client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
	if err != nil {
		return err
	}
	if string(b) != "ok" {
		return fmt.Errorf("/readyz answers %q", b)
	}
	return nil
}

func (c *ControlPlane) namespaceExists(ctx context.Context, name string) error {
	_, err := c.client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	return err
}

func (c *ControlPlane) serviceAccountExists(ctx context.Context, namespace, name string) error {
	_, err := c.client.CoreV1().ServiceAccounts(namespace).Get(ctx, name, metav1.GetOptions{})
	return err
}
