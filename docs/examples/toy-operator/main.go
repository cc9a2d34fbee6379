// A toy operator for the Grove API: standalone cliques only, with the standard library alone. It shows what the suite
// says of an implementation that is only begun; it is not meant to be used.
//
// It watches, and whenever something has changed it looks at everything and does what is missing.
package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"time"
)

type object = map[string]any

const (
	sets    = "/apis/grove.io/v1alpha1/%spodcliquesets"
	cliques = "/apis/grove.io/v1alpha1/%spodcliques"
	gangs   = "/apis/scheduler.grove.io/v1alpha1/%spodgangs"
	pods    = "/api/v1/%spods"
	gate    = "grove.io/podgang-pending-creation"
)

var (
	client    *http.Client
	server    string
	scheduler string
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "path of the kubeconfig, with the certificates in it")
	flag.StringVar(&scheduler, "scheduler-name", "", "the scheduler that pods are given to")
	flag.Parse()
	connect(*kubeconfig)
	changed := make(chan bool, 1)
	for _, path := range []string{sets, cliques, gangs, pods} {
		go watch(fmt.Sprintf(path, ""), changed)
	}
	fmt.Println("ready")
	for range changed {
		reconcile()
		time.Sleep(100 * time.Millisecond) // what comes meanwhile is one more look
	}
}

// connect reads the one cluster and the one user of a kubeconfig.
func connect(path string) {
	text, err := os.ReadFile(path)
	if err != nil {
		log.Fatal(err)
	}
	field := func(name string) []byte {
		found := regexp.MustCompile(name + `: *(\S+)`).FindSubmatch(text)
		if found == nil {
			log.Fatalf("%s: no %s", path, name)
		}
		return found[1]
	}
	data := func(name string) []byte {
		decoded, err := base64.StdEncoding.DecodeString(string(field(name + "-data")))
		if err != nil {
			log.Fatal(err)
		}
		return decoded
	}
	pair, err := tls.X509KeyPair(data("client-certificate"), data("client-key"))
	if err != nil {
		log.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(data("certificate-authority"))
	server = string(field("server"))
	client = &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots},
	}}
}

// watch says that something has changed, whenever something of a collection has.
func watch(path string, changed chan<- bool) {
	for {
		version := text(request("GET", path, nil), "metadata", "resourceVersion")
		answer, err := client.Get(server + path + "?watch=true&resourceVersion=" + version)
		if err != nil {
			log.Fatal(err)
		}
		for decoder := json.NewDecoder(answer.Body); ; {
			select {
			case changed <- true:
			default:
			}
			var event object
			if decoder.Decode(&event) != nil || event["type"] == "ERROR" {
				break
			}
		}
		answer.Body.Close()
		time.Sleep(time.Second)
	}
}

// request sends an object and returns the answer, nil if it was refused.
func request(method, path string, body object) object {
	content := new(bytes.Buffer)
	if body != nil {
		_ = json.NewEncoder(content).Encode(body)
	}
	asked, _ := http.NewRequest(method, server+path, content)
	if method == "PATCH" {
		asked.Header.Set("Content-Type", "application/merge-patch+json")
	}
	asked.Header.Set("User-Agent", "toy-operator/0")
	answer, err := client.Do(asked)
	if err != nil {
		log.Print(err)
		return nil
	}
	defer answer.Body.Close()
	var found object
	_ = json.NewDecoder(answer.Body).Decode(&found)
	if answer.StatusCode >= 400 {
		log.Printf("%s %s: %v", method, path, found["message"])
		return nil
	}
	return found
}

// at returns what stands at a path of keys, nil if there is nothing.
func at(found any, path ...string) any {
	for _, key := range path {
		mapping, _ := found.(object)
		found = mapping[key]
	}
	return found
}

func text(found any, path ...string) string {
	value, _ := at(found, path...).(string)
	return value
}

func number(found any, path ...string) int {
	value, _ := at(found, path...).(float64)
	return int(value)
}

func list(found any, path ...string) []any {
	value, _ := at(found, path...).([]any)
	return value
}

func condition(found object, kind string) bool {
	for _, each := range list(found, "status", "conditions") {
		if text(each, "type") == kind {
			return text(each, "status") == "True"
		}
	}
	return false
}

func all(path string) []object {
	var found []object
	for _, item := range list(request("GET", fmt.Sprintf(path, ""), nil), "items") {
		found = append(found, item.(object))
	}
	return found
}

func named(objects []object, namespace, name string) object {
	for _, each := range objects {
		if text(each, "metadata", "name") == name && text(each, "metadata", "namespace") == namespace {
			return each
		}
	}
	return nil
}

// write creates an object in a namespace, or patches the one of a name.
func write(method, path, namespace, name string, body object) {
	request(method, fmt.Sprintf(path, "namespaces/"+namespace+"/")+name, body)
}

func metadata(name, version, kind string, owner object, labels object) object {
	reference := object{"apiVersion": version, "kind": kind, "controller": true, "blockOwnerDeletion": true,
		"name": text(owner, "metadata", "name"), "uid": text(owner, "metadata", "uid")}
	labels["app.kubernetes.io/managed-by"] = "grove-operator"
	return object{"name": name, "labels": labels, "ownerReferences": []object{reference}}
}

func reconcile() {
	haveCliques, haveGangs, havePods := all(cliques), all(gangs), all(pods)
	for _, set := range all(sets) {
		namespace, name := text(set, "metadata", "namespace"), text(set, "metadata", "name")
		if at(set, "metadata", "deletionTimestamp") != nil {
			continue // owner references do the rest
		}
		member := map[any]bool{} // of a scaling group, which is beyond a toy
		for _, group := range list(set, "spec", "template", "podCliqueScalingGroups") {
			for _, name := range list(group, "cliqueNames") {
				member[name] = true
			}
		}
		available := 0
		for index := 0; index < number(set, "spec", "replicas"); index++ {
			replica := fmt.Sprintf("%s-%d", name, index)
			labels := func() object {
				return object{"app.kubernetes.io/part-of": name, "grove.io/podgang": replica,
					"grove.io/podcliqueset-replica-index": fmt.Sprint(index)}
			}
			var groups []object
			complete, ready := true, true
			gang := named(haveGangs, namespace, replica)
			for _, template := range list(set, "spec", "template", "cliques") {
				if member[at(template, "name")] {
					continue
				}
				full := replica + "-" + text(template, "name")
				clique := named(haveCliques, namespace, full)
				if clique == nil {
					write("POST", cliques, namespace, "", object{"apiVersion": "grove.io/v1alpha1", "kind": "PodClique",
						"metadata": metadata(full, "grove.io/v1alpha1", "PodCliqueSet", set, labels()),
						"spec":     at(template, "spec")})
					complete, ready = false, false
					continue
				}
				references, own := podsOf(clique, havePods, gang, labels)
				complete = complete && len(references) == number(clique, "spec", "replicas")
				minimum := number(clique, "spec", "minAvailable")
				if minimum == 0 {
					minimum = number(clique, "spec", "replicas")
				}
				ready = ready && own >= minimum
				groups = append(groups, object{"name": full, "podReferences": references, "minReplicas": minimum})
			}
			if ready {
				available++
			}
			if !complete {
				continue
			}
			if gang == nil {
				marks := labels()
				marks["grove.io/scheduler-name"] = scheduler
				write("POST", gangs, namespace, "", object{"apiVersion": "scheduler.grove.io/v1alpha1", "kind": "PodGang",
					"metadata": metadata(replica, "grove.io/v1alpha1", "PodCliqueSet", set, marks),
					"spec":     object{"podgroups": groups}})
			} else if !condition(gang, "Initialized") {
				initialized := object{"type": "Initialized", "status": "True", "reason": "PodsCreated", "message": "",
					"lastTransitionTime": time.Now().UTC().Format(time.RFC3339)}
				status := object{"conditions": append(list(gang, "status", "conditions"), initialized)}
				if text(gang, "status", "phase") == "" {
					status["phase"] = "Pending"
				}
				write("PATCH", gangs, namespace, "/"+replica+"/status", object{"status": status})
			}
		}
		say(sets, set, object{"replicas": number(set, "spec", "replicas"), "availableReplicas": available})
	}
}

// podsOf makes the missing pods of a clique, and takes off their gates when their gang is there. It returns the references
// to the pods, and how many are Ready.
func podsOf(clique object, have []object, gang object, labels func() object) ([]object, int) {
	namespace, name := text(clique, "metadata", "namespace"), text(clique, "metadata", "name")
	references, ready, scheduled, gated := []object{}, 0, 0, 0
	for _, pod := range have {
		if text(pod, "metadata", "labels", "grove.io/podclique") != name || text(pod, "metadata", "namespace") != namespace {
			continue
		}
		references = append(references, object{"namespace": namespace, "name": text(pod, "metadata", "name")})
		if condition(pod, "Ready") {
			ready++
		}
		if text(pod, "spec", "nodeName") != "" {
			scheduled++
		}
		if len(list(pod, "spec", "schedulingGates")) > 0 {
			gated++
			if gang != nil && condition(gang, "Initialized") {
				write("PATCH", pods, namespace, "/"+text(pod, "metadata", "name"), object{"spec": object{"schedulingGates": nil}})
			}
		}
	}
	for index := len(references); index < number(clique, "spec", "replicas"); index++ {
		spec := object{}
		for key, value := range at(clique, "spec", "podSpec").(object) {
			spec[key] = value
		}
		spec["schedulerName"], spec["schedulingGates"] = scheduler, []object{{"name": gate}}
		marks := labels()
		marks["grove.io/podclique"], marks["grove.io/podclique-pod-index"] = name, fmt.Sprint(index)
		made := metadata("", "grove.io/v1alpha1", "PodClique", clique, marks)
		made["generateName"] = name + "-"
		write("POST", pods, namespace, "", object{"apiVersion": "v1", "kind": "Pod", "metadata": made, "spec": spec})
	}
	say(cliques, clique, object{"replicas": len(references), "readyReplicas": ready,
		"scheduledReplicas": scheduled, "scheduleGatedReplicas": gated})
	return references, ready
}

// say writes a status where it has changed.
func say(path string, about object, status object) {
	status["observedGeneration"] = number(about, "metadata", "generation")
	told := object{}
	for key := range status {
		told[key] = number(about, "status", key)
	}
	if !reflect.DeepEqual(told, status) {
		write("PATCH", path, text(about, "metadata", "namespace"), "/"+text(about, "metadata", "name")+"/status",
			object{"status": status})
	}
}
