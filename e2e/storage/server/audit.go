package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apiserver/pkg/endpoints/request"
)

// audit stands before the API: it writes down each request for our resource, and fails the Gets that
// a test wants failed.
type audit struct {
	mu       sync.Mutex
	requests *os.File
	faults   *os.Root // a file NAME holds how many Gets of NAME are still to fail
}

func openAudit(requests, faults string) (*audit, error) {
	file, err := os.OpenFile(requests, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	dir, err := os.OpenRoot(faults)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &audit{requests: file, faults: dir}, nil
}

func (a *audit) before(api http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, ok := request.RequestInfoFrom(r.Context())
		if !ok || info.Resource != resource {
			api.ServeHTTP(w, r)
			return
		}
		fail, err := a.note(r, info)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		if fail {
			http.Error(w, fmt.Sprintf("a test wants the Get of %s to fail", info.Name), http.StatusInternalServerError)
			return
		}
		api.ServeHTTP(w, r)
	})
}

// note writes a request down, before it is answered, and tells whether it is to fail.
func (a *audit) note(r *http.Request, info *request.RequestInfo) (fail bool, err error) {
	entry := map[string]string{"verb": info.Verb, "namespace": info.Namespace, "name": info.Name}
	if user, ok := request.UserFrom(r.Context()); ok {
		entry["user"] = user.GetName()
	}
	line, err := json.Marshal(entry)
	if err != nil {
		return false, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, err := a.requests.Write(append(line, '\n')); err != nil {
		return false, err
	}
	if info.Verb != "get" {
		return false, nil
	}
	return a.takeFault(info.Name)
}

// takeFault counts down the faults that are left for a name.
func (a *audit) takeFault(name string) (bool, error) {
	text, err := a.faults.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	left, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || left <= 0 {
		return false, err
	}
	return true, a.faults.WriteFile(name, []byte(strconv.Itoa(left-1)), 0o600)
}
