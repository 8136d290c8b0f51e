//go:build linux

package lab

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ReachableAddr is the address at which the API server reaches programs on this machine: the bridge, or, for a
// cluster of the user's own, the address from which this machine talks to it.
func (c *ControlPlane) ReachableAddr() (netip.Addr, error) {
	if !c.External {
		return c.lab.Addr(), nil
	}
	u, err := url.Parse(c.config.Host)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("reading the API server's address: %w", err)
	}
	port := u.Port()
	if port == "" {
		port = "443"
	}
	conn, err := net.Dial("udp", net.JoinHostPort(u.Hostname(), port)) // sends nothing; the kernel picks the source
	if err != nil {
		return netip.Addr{}, fmt.Errorf("finding this machine's address towards the API server: %w", err)
	}
	local := conn.LocalAddr().String()
	if err := conn.Close(); err != nil {
		return netip.Addr{}, fmt.Errorf("finding this machine's address towards the API server: %w", err)
	}
	addr, err := netip.ParseAddrPort(local)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("finding this machine's address towards the API server: %w", err)
	}
	if addr.Addr().IsLoopback() {
		return netip.Addr{}, fmt.Errorf("the API server of KUBECONFIG is at %s, a loopback address: it cannot call a webhook on this machine"+
			" (run the programs in the cluster, or unset KUBECONFIG)", u.Host)
	}
	return addr.Addr().Unmap(), nil
}

// ExposeWebhook writes the EndpointSlice of a Service without selector, so that the API server reaches a program at
// target through the Service's port, the way a pod would be reached. Called again it moves the Service to the new
// target.
func (c *ControlPlane) ExposeWebhook(ctx context.Context, namespace, service string, port int32, target netip.AddrPort) error {
	if target.Addr().IsLoopback() || target.Addr().IsUnspecified() {
		return fmt.Errorf("exposing %s/%s: %s is no address that an EndpointSlice may hold (use ReachableAddr)", namespace, service, target)
	}
	svc, err := c.client.CoreV1().Services(namespace).Get(ctx, service, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("exposing %s/%s: %w", namespace, service, err)
	}
	if len(svc.Spec.Selector) > 0 {
		return fmt.Errorf("exposing %s/%s: the Service has a selector, its endpoints belong to pods", namespace, service)
	}
	var name *string
	for _, p := range svc.Spec.Ports {
		if p.Port == port {
			name = &p.Name
		}
	}
	if name == nil {
		return fmt.Errorf("exposing %s/%s: the Service has no port %d", namespace, service, port)
	}
	number, tcp, ready := int32(target.Port()), corev1.ProtocolTCP, true
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: service + "-lab", Namespace: namespace,
			Labels: map[string]string{discoveryv1.LabelServiceName: service, discoveryv1.LabelManagedBy: "hostwarrant-lab"},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{{
			Addresses:  []string{target.Addr().String()},
			Conditions: discoveryv1.EndpointConditions{Ready: &ready},
		}},
		Ports: []discoveryv1.EndpointPort{{Name: name, Port: &number, Protocol: &tcp}},
	}
	if target.Addr().Is6() {
		slice.AddressType = discoveryv1.AddressTypeIPv6
	}
	slices := c.client.DiscoveryV1().EndpointSlices(namespace)
	_, err = slices.Create(ctx, slice, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = slices.Update(ctx, slice, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("exposing %s/%s: %w", namespace, service, err)
	}
	return nil
}
