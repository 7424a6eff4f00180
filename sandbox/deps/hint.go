package deps

import (
	"fmt"
	"strings"

	"sallyport/sandbox"
)

var (
	pythonMissing = onDemand(`No module named '([A-Za-z_][A-Za-z0-9_.]{0,200})'`)
	nodeMissing   = onDemand(`Cannot find (?:package|module) '([^'\s]{1,200})'`)
)

// distributions maps Python modules to packages with a different name.
const distributions = ` cv2:opencv-python-headless yaml:PyYAML PIL:Pillow sklearn:scikit-learn skimage:scikit-image bs4:beautifulsoup4 dateutil:python-dateutil
 dotenv:python-dotenv docx:python-docx pptx:python-pptx fitz:PyMuPDF pymupdf:PyMuPDF jwt:PyJWT Crypto:pycryptodome Cryptodome:pycryptodomex OpenSSL:pyOpenSSL
 serial:pyserial usb:pyusb git:GitPython github:PyGithub gitlab:python-gitlab slugify:python-slugify magic:python-magic attr:attrs pkg_resources:setuptools
 psycopg2:psycopg2-binary MySQLdb:mysqlclient mysql:mysql-connector-python bson:pymongo gridfs:pymongo ldap:python-ldap nacl:PyNaCl zmq:pyzmq
 jose:python-jose multipart:python-multipart telegram:python-telegram-bot discord:discord.py faiss:faiss-cpu Levenshtein:levenshtein fuzzywuzzy:fuzzywuzzy
 umap:umap-learn hdbscan:hdbscan lxml_html_clean:lxml-html-clean wx:wxPython win32com:pywin32 socks:PySocks markdown:Markdown jinja2:Jinja2 flask:Flask
 tabula:tabula-py camelot:camelot-py pdfminer:pdfminer.six ruamel:ruamel.yaml Xlib:python-xlib osgeo:GDAL mpl_toolkits:matplotlib pylab:matplotlib
 chess:chess igraph:igraph community:python-louvain speech_recognition:SpeechRecognition websocket:websocket-client barcode:python-barcode
 kafka:kafka-python consul:python-consul etcd3:etcd3 snowflake:snowflake-connector-python pyarrow:pyarrow googleapiclient:google-api-python-client
 absl:absl-py grpc:grpcio grpc_status:grpcio-status rest_framework:djangorestframework environ:django-environ tlz:toolz past:future decouple:python-decouple
 unidecode:Unidecode pyximport:Cython Bio:biopython sentence_transformers:sentence-transformers charset_normalizer:charset-normalizer `

// Distribution returns the package of a Python module, which usually has the same name.
func Distribution(module string) string {
	top, _, _ := strings.Cut(module, ".")
	_, rest, found := strings.Cut(distributions, " "+top+":")
	if !found {
		return strings.ReplaceAll(top, "_", "-")
	}
	return strings.Fields(rest)[0]
}

// Missing returns the module or package that is not installed according to the message
// of a fault. It returns "" if there is none, or if no package can provide it: a file of
// the program itself, a wrapper, or a built-in module.
func Missing(interpreter sandbox.Interpreter, message string) string {
	pattern := pythonMissing
	if interpreter == sandbox.Node {
		pattern = nodeMissing
	}
	match := pattern().FindStringSubmatch(message)
	if match == nil {
		return ""
	}
	module := match[1]
	if interpreter == sandbox.Node {
		if module = nodePackage(module); module == "" || Check(interpreter, []string{module}) != nil {
			return ""
		}
		return module
	}
	top, _, _ := strings.Cut(module, ".")
	if isReservedModule(top) || isStdlib(top) || Check(interpreter, []string{Distribution(top)}) != nil {
		return ""
	}
	return top
}

// nodePackage returns the package of an import such as "@scope/name/file".
func nodePackage(specifier string) string {
	parts := strings.SplitN(specifier, "/", 3)
	if strings.HasPrefix(specifier, "@") && len(parts) > 1 {
		return parts[0] + "/" + parts[1]
	}
	return parts[0]
}

// Hint says in one line how to install a missing module: with the tool
// install_dependencies if install is set, otherwise by the operator. environment is
// that of the program, "" the default one. module is a result of [Missing].
func Hint(interpreter sandbox.Interpreter, module, environment string, install bool) string {
	name, language, key := Distribution(module), "", "python.requirements"
	if interpreter == sandbox.Node {
		name, language, key = module, `, language="typescript"`, "typescript.packages"
	}
	if !install {
		if environment == "" {
			environment = "default"
		}
		return fmt.Sprintf("%s is not installed; the operator can add %s to environments.%s.%s", module, name, environment, key)
	}
	if environment != "" {
		language += fmt.Sprintf(", environment=%q", environment)
	}
	return fmt.Sprintf("%s is not installed: install_dependencies(packages=[%q]%s)", module, name, language)
}
