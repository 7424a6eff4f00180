package secretstore

import (
	"slices"
	"time"

	"sallyport/internal/secretvalue"
)

// Managers are the settings of the secret managers: how they are reached, and how the gateway authenticates to them.
type Managers struct {
	// Refresh is how often secrets without a lease are read again; default 5m. They are also read when an upstream connects.
	Refresh time.Duration
	// Keep is how long a value may be used after it was read, if its manager cannot be reached; default 1h.
	Keep time.Duration
	// Vault is HashiCorp Vault, or OpenBao.
	Vault Vault
	// OnePassword is a 1Password Connect server.
	OnePassword OnePassword
	// AWS is AWS Secrets Manager.
	AWS AWS
	// GCP is Google Secret Manager.
	GCP GCP
	// Problem describes references without a value, "" if all have one. Unless it is "", nothing may be read.
	Problem string
}

// Vault is the settings of HashiCorp Vault. It authenticates with one of token, token_file, approle and kubernetes.
type Vault struct {
	// Address is the URL of the server; default that of VAULT_ADDR.
	Address string
	// Namespace is a namespace of Vault Enterprise; default that of VAULT_NAMESPACE.
	Namespace string
	// CA is a file with the certificates to trust; default that of VAULT_CACERT, or those of the system.
	CA string
	// Insecure allows http:// to another machine.
	Insecure bool
	// Token is a token; default that of VAULT_TOKEN.
	Token secretvalue.Secret
	// TokenFile is a file with a token, as a Vault agent writes it. It is read again when the token is refused.
	TokenFile string
	// AppRole logs in by the AppRole method.
	AppRole AppRole
	// Kubernetes logs in by the service account of a pod.
	Kubernetes Kubernetes
}

// AppRole is a login by the AppRole method of Vault.
type AppRole struct {
	// RoleID is the id of the role.
	RoleID secretvalue.Secret
	// SecretID is the secret id of the role; default none.
	SecretID secretvalue.Secret
	// Mount is the path of the method; default approle.
	Mount string
}

// Kubernetes is a login by the Kubernetes method of Vault.
type Kubernetes struct {
	// Role is the role at Vault.
	Role string
	// Mount is the path of the method; default kubernetes.
	Mount string
	// TokenFile is the token of the service account; default that of the pod.
	TokenFile string
}

// OnePassword is the settings of a 1Password Connect server.
type OnePassword struct {
	// URL is the address of the server; default that of OP_CONNECT_HOST.
	URL string
	// Token is an access token; default that of OP_CONNECT_TOKEN.
	Token secretvalue.Secret
	// CA is a file with the certificates to trust; default those of the system.
	CA string
	// Insecure allows http:// to another machine, such as a service of the same cluster.
	Insecure bool
}

// AWS is the settings of AWS Secrets Manager. Its credentials are those of the AWS tools: the variables, a web identity,
// the profile of the shared files, the container, and with this section also the instance.
type AWS struct {
	// Region is the region; default that of AWS_REGION, AWS_DEFAULT_REGION or the profile.
	Region string
	// Profile is the profile of the shared files; default that of AWS_PROFILE, or default.
	Profile string
	// Endpoint is the URL of the service; default that of the region.
	Endpoint string
	// CA is a file with the certificates to trust; default those of the system.
	CA string
	// Instance takes the credentials of the EC2 instance, if there are no others; default false.
	Instance bool
}

// GCP is the settings of Google Secret Manager.
type GCP struct {
	// Project is the project of references that name none.
	Project string
	// Credentials is a file with the key of a service account; default that of GOOGLE_APPLICATION_CREDENTIALS.
	Credentials string
	// Instance takes the service account of the machine, from its metadata server, if there is no file; default false.
	Instance bool
	// Endpoint is the URL of the service; default that of Google.
	Endpoint string
	// CA is a file with the certificates to trust; default those of the system.
	CA string
}

// DefaultManagers returns the settings without a section in the file.
func DefaultManagers() Managers {
	return Managers{Refresh: 5 * time.Minute, Keep: time.Hour, Vault: Vault{AppRole: AppRole{Mount: "approle"}, Kubernetes: Kubernetes{Mount: "kubernetes"}}}
}

// A Fault is an invalid setting: its key below the section, and what is wrong.
type Fault struct {
	Key     []string
	Message string
}

// Faults returns the invalid settings. Their messages have no value.
func (m Managers) Faults() (all []Fault) {
	add := func(wrong bool, message string, key ...string) {
		if wrong {
			all = append(all, Fault{key, message})
		}
	}
	add(m.Refresh < 10*time.Second || m.Refresh > 24*time.Hour, "refresh must be from 10s to 24h", "refresh")
	add(m.Keep < 0 || m.Keep > 7*24*time.Hour, "keep must be from 0s to 168h", "keep")
	if m.Problem != "" {
		return all // its values mean nothing
	}
	for _, one := range []struct {
		what, address string
		insecure      bool
		key           []string
	}{
		{"Vault", m.Vault.Address, m.Vault.Insecure, []string{"vault", "address"}},
		{"1Password Connect", m.OnePassword.URL, m.OnePassword.Insecure, []string{"onepassword", "url"}},
		{"AWS Secrets Manager", m.AWS.Endpoint, false, []string{"aws", "endpoint"}},
		{"Google Secret Manager", m.GCP.Endpoint, false, []string{"gcp", "endpoint"}},
	} {
		if one.address != "" {
			if _, err := checkAddress(one.what, one.address, one.insecure); err != nil {
				add(true, err.Error(), one.key...)
			}
		}
	}
	return slices.Concat(all, m.Vault.faults())
}

func (v Vault) faults() (all []Fault) {
	ways := 0
	for _, set := range []bool{v.Token != "", v.TokenFile != "", v.AppRole.RoleID != "", v.Kubernetes.Role != ""} {
		if set {
			ways++
		}
	}
	if ways > 1 {
		all = append(all, Fault{[]string{"vault"}, `there is one way to authenticate: keep one of "token", "token_file", "approle" and "kubernetes"`})
	}
	if v.AppRole.SecretID != "" && v.AppRole.RoleID == "" {
		all = append(all, Fault{[]string{"vault", "approle"}, `"approle" needs "role_id"`})
	}
	if v.Kubernetes.TokenFile != "" && v.Kubernetes.Role == "" {
		all = append(all, Fault{[]string{"vault", "kubernetes"}, `"kubernetes" needs "role"`})
	}
	return all
}

// SecretValues returns the credentials in the settings.
func (m Managers) SecretValues() []string {
	return []string{string(m.Vault.Token), string(m.Vault.AppRole.SecretID), string(m.Vault.AppRole.RoleID), string(m.OnePassword.Token)}
}
