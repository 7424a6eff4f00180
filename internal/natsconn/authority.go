package natsconn

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"
)

// User returns the name of the user in the credentials.
func (s Server) User() (string, error) {
	if s.Creds == "" {
		return "", errors.New("there are no credentials, so it has no name")
	}
	data, err := os.ReadFile(s.Creds)
	if err != nil {
		return "", fmt.Errorf("credentials: %w", err)
	}
	text, err := jwt.ParseDecoratedJWT(data)
	if err != nil {
		return "", fmt.Errorf("credentials: %s has none", s.Creds)
	}
	claims, err := jwt.DecodeUserClaims(text)
	if err != nil {
		return "", fmt.Errorf("credentials: %s has none of a user", s.Creds)
	}
	return claims.Name, nil
}

// Authority makes credentials for the users of one account. Its folder has the account's key, which the servers do not need.
type Authority struct {
	dir     string
	account nkeys.KeyPair
}

// The files of an authority.
const (
	accountFile = "account.seed"
	// ServerFile is the part of the servers' configuration that makes them accept the credentials.
	ServerFile = "nats-accounts.conf"
)

// OpenAuthority opens the authority of a folder; made says that it was made.
func OpenAuthority(dir string) (a *Authority, made bool, err error) {
	seed, err := os.ReadFile(filepath.Join(dir, accountFile))
	if errors.Is(err, os.ErrNotExist) {
		a, err = createAuthority(dir)
		return a, true, err
	}
	if err != nil {
		return nil, false, err
	}
	account, err := nkeys.FromSeed([]byte(strings.TrimSpace(string(seed))))
	if err != nil {
		return nil, false, fmt.Errorf("%s: %w", filepath.Join(dir, accountFile), err)
	}
	return &Authority{dir, account}, false, nil
}

// createAuthority makes an operator, an account with JetStream and one for the servers themselves. It does not keep the
// operator's key.
func createAuthority(dir string) (*Authority, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	operator, err := nkeys.CreateOperator()
	if err != nil {
		return nil, err
	}
	account, accountJWT, err := makeAccount("SALLYPORT", operator, true)
	if err != nil {
		return nil, err
	}
	system, systemJWT, err := makeAccount("SYS", operator, false)
	if err != nil {
		return nil, err
	}
	public, accountKey, systemKey, err := publicKeys(operator, account, system)
	if err != nil {
		return nil, err
	}
	claims := jwt.NewOperatorClaims(public)
	claims.Name, claims.SystemAccount = "sallyport", systemKey
	operatorJWT, err := claims.Encode(operator)
	if err != nil {
		return nil, err
	}
	text := fmt.Sprintf("operator: %q\nsystem_account: %s\nresolver: MEMORY\nresolver_preload: {\n  %s: %q\n  %s: %q\n}\n", operatorJWT, systemKey, accountKey, accountJWT, systemKey, systemJWT)
	seed, err := account.Seed()
	if err != nil {
		return nil, err
	}
	a := &Authority{dir, account}
	return a, errors.Join(a.write(ServerFile, []byte(text)), a.write(accountFile, append(seed, '\n')))
}

func publicKeys(operator, account, system nkeys.KeyPair) (o, a, s string, err error) {
	o, err = operator.PublicKey()
	a, err2 := account.PublicKey()
	s, err3 := system.PublicKey()
	return o, a, s, errors.Join(err, err2, err3)
}

func makeAccount(name string, operator nkeys.KeyPair, jetStream bool) (nkeys.KeyPair, string, error) {
	pair, err := nkeys.CreateAccount()
	if err != nil {
		return nil, "", err
	}
	public, err := pair.PublicKey()
	if err != nil {
		return nil, "", err
	}
	claims := jwt.NewAccountClaims(public)
	claims.Name = name
	if jetStream {
		claims.Limits.JetStreamLimits = jwt.JetStreamLimits{MemoryStorage: -1, DiskStorage: -1, Streams: -1, Consumer: -1}
	}
	text, err := claims.Encode(operator)
	return pair, text, err
}

// AddUser writes the credentials of a user to NAME.creds, and returns its path. An existing file is an error.
func (a *Authority) AddUser(name string, publish, subscribe []string) (path string, err error) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		return "", err
	}
	public, err := pair.PublicKey()
	if err != nil {
		return "", err
	}
	claims := jwt.NewUserClaims(public)
	claims.Name = name
	claims.Pub.Allow.Add(publish...)
	claims.Sub.Allow.Add(subscribe...)
	text, err := claims.Encode(a.account)
	if err != nil {
		return "", err
	}
	seed, err := pair.Seed()
	if err != nil {
		return "", err
	}
	creds, err := jwt.FormatUserConfig(text, seed)
	if err != nil {
		return "", err
	}
	return filepath.Join(a.dir, name+".creds"), a.write(name+".creds", creds)
}

// AddFile writes a new file for its owner only, and returns its path; made says that there was none of this name.
func (a *Authority) AddFile(name string, data []byte) (path string, made bool, err error) {
	err = a.write(name, data)
	if errors.Is(err, os.ErrExist) {
		return filepath.Join(a.dir, name), false, nil
	}
	return filepath.Join(a.dir, name), err == nil, err
}

// write writes a new file for its owner only.
func (a *Authority) write(name string, data []byte) (err error) {
	f, err := os.OpenFile(filepath.Join(a.dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.Write(data); err != nil {
		return err
	}
	return f.Sync()
}
