package trust

import (
	"encoding/base64"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"sallyport/internal/sanitize"
)

// A pattern finds text that is addressed to a model rather than about the tool. One
// match of a strong pattern holds a definition, of others it takes two.
type pattern struct {
	rule   string
	strong bool
	// words has substrings of which every match contains one: a quick test that most texts fail.
	words []string
	find  *regexp.Regexp
}

// patterns match the output of fold: lower case, single spaces, no quotes or markup. They are compiled when the first
// definition is checked, since that takes milliseconds.
var patterns = sync.OnceValue(func() []pattern {
	return []pattern{
		{"overrides instructions", true, []string{"instruction", "prompt", "rules", "guideline", "restriction", "directive", "safeguard"}, regexp.MustCompile(
			`\b(ignor(e|ing)|disregard(ing)?|forget(ting)?|overrid(e|ing|es)|bypass(ing)?|supersedes?|replaces?|stop following|do not follow) (\w+ ){0,3}?((previous|prior|earlier|above|preceding|all|any|other|system|safety|existing|your|original|former|user'?s?)\b( \w+){0,2}? (instructions?|prompts?|guidelines?|directives?|safeguards)|(previous|prior|earlier|preceding|system|safety|your|original|former)\b( \w+){0,2}? (rules|restrictions))\b`)},
		{"hides from the user", true, []string{"user", "human", "anyone", "anybody", "operator"}, regexp.MustCompile(
			`\b(do not|don't|dont|never|must not|should not|avoid|without|refrain from) (ever |also |explicitly )?(tell(ing)?|mention(ing)?|inform(ing)?|reveal(ing)?|notif(y|ying)|alert(ing)?|disclos(e|ing)|expos(e|ing)|warn(ing)?|let(ting)?) (\w+ ){0,7}?(users?|human|anyone|anybody|operator)\b`)},
		{"hides from the user", true, []string{"secret", "silent", "hidden", "invisible", "quiet", "confidential"}, regexp.MustCompile(
			`\b(keep|kept|keeping|do|doing|perform|call|invoke|run|send) (this|it|that|these) (\w+ ){0,3}?(secret(ly)?|silent(ly)?|hidden from|invisibl[ey]|quietly|confidential) ?(from |to )?`)},
		{"role marks", true, []string{"<", "["}, regexp.MustCompile(
			`(^|[^a-z0-9_])< ?/? ?(important|system|instructions?|(secret|hidden)[-_ ]instructions?|hidden|critical|admin|assistant|im_start|im_end|sys|urgent|override|directive|system[-_ ]?(prompt|message|note|reminder|instructions?)|tool_(call|result|description)s?)( [^>]{0,80})? ?/? ?>|<\||\|>|\[/?inst\]|\[(system|admin|hidden)( \w+)?\]`)},
		{"role marks", true, []string{"you are", "act as", "pretend", "developer mode", "jailbreak", "new instruction", "system override"}, regexp.MustCompile(
			`\byou are (now|no longer) (an?|in|the|free|my|dan|allowed|required|bound|operating|acting)\b|\bpretend (to be|that you|you are)\b|\b(enter|enable|activate) developer mode\b|\bjailbreak|\b(your |the )?new instructions? (for you |from the \w+ )?(are|is|follow|:)|\bsystem override\b`)},
		{"orders around other tools", false, []string{"any other tool", "other tools", "all tools", "another tool", "every tool", "any tool", "every other tool", "all other"}, regexp.MustCompile(
			`\b(before|after|when|whenever|while|instead of|prior to|every time) (you )?(us(e|ing)|call(ing)?|invok(e|ing)|run(ning)?|execut(e|ing)|access(ing)?)? ?(of )?(any|all|every|each|another)( of the)?( other)? (available )?tools?( calls?)?\b`)},
		{"orders around this tool", false, []string{"before", "first", "prior to", "in order to", "otherwise"}, regexp.MustCompile(
			`\b(before|prior to|when) (you )?(us(e|ing)|call(ing)?|invok(e|ing)|execut(e|ing)|running) (of )?(this|the|it)( \w+){0,2}\b.{0,80}?\b(read|open|load|cat|fetch|access|send|include|collect|copy|upload|pass|run|execute|get the contents?)\b`)},
		{"other people's files", false, []string{".ssh", "id_rsa", "id_ed25519", ".aws/", ".env", "mcp.json", "etc/passwd", "etc/shadow", ".netrc", ".npmrc", "credentials", ".kube", "keychain", "private key", "_history", "wallet", "desktop_config", ".git-credentials", "environment variables", "secrets"}, regexp.MustCompile(
			`\b(read|open|load|cat|fetch|access|send|include|collect|copy|upload|pass|attach|get|retrieve|extract|append|dump|list|harvest|provide|grab) (\w+ ){0,3}?(the |all |its |their |any |your |users? |every )?(\w+ )?(contents? |file |files |data |value |values |output )?(of |from |in |at |inside )?(the |all |your |users? )?(file )?((~|/home/\S+|/root|\$home|%userprofile%)[/\\]\S*|\S*\.ssh\S*|\S*id_(rsa|ed25519)\S*|\S*\.aws/\S+|\S*mcp\.json|\S*/?etc/(passwd|shadow)|\S*\.netrc|\S*\.npmrc|\S*\.kube\S*|\S*\.git-credentials|\S*_desktop_config\.json|(\S*/)?\.env\b|\S*_history\b|(ssh |private |api |aws |cloud |stored |saved )+(keys?|credentials|secrets|tokens)|(wallet|keychain)( \w+)?|(process )?environment variables)`)},
		{"smuggles data", false, []string{"conversation", "chat history", "messages", "system prompt", "context", "contents", "sidenote", "file", "key", "credentials", "secret", "token", "password", "everything"}, regexp.MustCompile(
			`\b(pass|include|put|provide|send|add|append|attach|supply|place|copy|insert|encode|embed|forward|summari[sz]e) (\w+ ){0,4}?(entire|whole|full|complete|all|verbatim|contents|previous|it|them|everything|that|key|keys|credentials|secrets?|passwords?|system prompt|chat history|conversation( history)?)\b(,? \w+){0,10}?,? (as|in|into|to|via|with|inside) (the |this |its |a |an )?(value of )?(the )?(hidden )?\w+ (parameter|argument|field|param|property|header|url|query)\b`)},
		{"asks for the conversation", false, []string{"conversation", "chat history", "messages", "system prompt"}, regexp.MustCompile(
			`\b(pass|include|put|provide|send|add|append|attach|supply|copy|insert|forward|leak|repeat|print|output|reveal|summari[sz]e|log) (\w+ ){0,3}?(entire |whole |full |complete |all |verbatim |previous |your |our |current )+(\w+ ){0,2}?(conversation|chat history|messages|system prompt|context window|prompt)\b`)},
		{"sends to an address", false, []string{"http", "@", "webhook"}, regexp.MustCompile(
			`\b(send|forward|upload|post|transmit|bcc|cc|e-?mail|copy|exfiltrate|submit|report|deliver|redirect|append)\b.{0,100}? (to|at|via|with|in|by)? ?(this |our |the following )?(address |server |url |endpoint |webhook )?(https?://\S+|[\w.+-]+@[\w-]+(\.[\w-]+)+)`)},
		{"always add to calls", false, []string{"always", "must", "every", "each"}, regexp.MustCompile(
			`\b(always|must|every time|for (every|each|all|any)|whenever)\b.{0,80}?\b(bcc|blind copy|cc|recipient|forward (it|a copy|them|all)|send a copy|also (send|call|invoke|include|forward|post|upload))\b`)},
		{"runs a download", true, []string{"curl", "wget", "iwr", "base64"}, regexp.MustCompile(
			`\b(curl|wget|iwr|invoke-webrequest)\b[^|\n]{0,200}\| ?(sudo )?(ba|z|da)?sh\b|\bbase64 (-d|--decode|-D)\b[^|\n]{0,40}\| ?(sudo )?(ba|z)?sh\b|\b(run|execute|call)\b.{0,40}\b(curl|wget) -?.{0,100}(\$\(|<|@|-d |--data|\?\w+=\$)`)},
		{"threatens", false, []string{"will fail", "not work", "crash", "will break", "be lost", "be deleted", "be blocked", "will not proceed", "stops working", "be shut", "be penalized"}, regexp.MustCompile(
			`\b(otherwise|or else|if you (do not|don't|fail to)|unless you|failure to)\b.{0,120}?\b(will (fail|break|crash|be (lost|deleted|blocked|shut|penalized|terminated)|not work|not proceed|stop)|does not work|won't work|stops working|crash(es)?)\b`)},
		{"no questions", false, []string{"confirm", "permission", "approval", "consent", "asking", "question"}, regexp.MustCompile(
			`\b(without|do not|don't|never|no need to|skip|bypass|avoid|disable) (\w+ ){0,3}?(ask(ing)?|request(ing)?|wait(ing)?|seek(ing)?|confirm(ing|ation)?|permission|approval|consent|prompt(ing)?)\b( \w+){0,4}? (user|users|human|confirmation|permission|approval|consent|questions?)\b`)},
		{"claims to be trusted", false, []string{"security", "compliance", "authori", "required by", "mandatory", "policy", "audit", "approved"}, regexp.MustCompile(
			`\b(required by|for|per|due to|mandated by|approved by) (\w+ ){0,3}?(security|compliance|audit|policy|regulatory|authorization|it department|administrators?)( \w+)?( reasons| purposes| requirements| team| policy| checks?| verification| logging)\b`)},
		{"image beacon", true, []string{"]("}, regexp.MustCompile(`!\[[^\]]*\]\(https?://[^)\s]*[?&=/][^)\s]*(\{|\$|<|%7b|\bdata=|\bq=\{?)[^)]*\)`)},
		{"HTML comment", true, []string{"<!--"}, regexp.MustCompile(`<!--[^>]*[a-z]{3,}[^>]* [^>]*[a-z]{2,}`)},
	}
})

var (
	markup = strings.NewReplacer("*", "", "`", "", "\"", "", "“", "", "”", "", "‘", "'", "’", "'", "–", "-", "—", "-")
)

// checkProse looks for text that is addressed to a model.
func (in *inspector) checkProse(where, s string) {
	if len(s) < 8 {
		return
	}
	if at := offscreenText(s); at > 0 {
		in.add("far out of sight", where, s[at:])
	}
	in.checkEncoded(where, s)
	text := fold(s)
	for _, p := range patterns() {
		if !slices.ContainsFunc(p.words, func(w string) bool { return strings.Contains(text, w) }) {
			continue
		}
		at := p.find.FindStringIndex(text)
		switch {
		case at == nil:
		case p.strong:
			in.add(p.rule, where, text[at[0]:at[1]])
		default:
			in.addWeak(p.rule, where, text[at[0]:at[1]])
		}
	}
	in.checkOtherTools(where, text)
}

// offscreenText returns the offset at which text continues after more empty space than
// fits on a screen, 0 if there is none.
func offscreenText(s string) int {
	lines, spaces := 0, 0
	for i := range len(s) {
		switch s[i] {
		case '\n':
			lines, spaces = lines+1, 0
		case ' ', '\t', '\r':
			spaces++
		default:
			if lines >= 30 || spaces >= 150 {
				return i
			}
			lines, spaces = 0, 0
		}
	}
	return 0
}

// fold normalizes spelling: compatibility forms, case, lookalike letters, hidden
// characters, markup, white space.
func fold(s string) string {
	if !isASCII(s) {
		s = norm.NFKC.String(s)
	}
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r' || unicode.IsSpace(r):
			return ' '
		case r < 0x7f:
			return unicode.ToLower(r)
		case sanitize.Hidden(r) || isJoiner(r) || isVariationSelector(r) || isBlank(r) || unicode.Is(unicode.Mn, r):
			return -1
		}
		return unicode.ToLower(lookalike(r))
	}, s)
	return strings.Join(strings.Fields(markup.Replace(s)), " ")
}

// checkEncoded finds sentences in base64, and blobs that are too long to be an example.
func (in *inspector) checkEncoded(where, s string) {
	for text := range strings.FieldsFuncSeq(s, func(r rune) bool { return !isBase64Digit(r) }) {
		if len(text) < 24 {
			continue
		}
		if isSentence(decode(text)) {
			in.add("encoded text", where, text+" is "+string(decode(text)))
		} else if len(text) >= 400 && strings.HasSuffix(where, "description") && isMixedCase(text) {
			in.add("encoded text", where, text)
		}
	}
}

// isBase64Digit is true for the digits of both alphabets of base64.
func isBase64Digit(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '+' || r == '/' || r == '-' || r == '_'
}

func decode(text string) []byte {
	text = strings.NewReplacer("-", "+", "_", "/").Replace(text)
	data, _ := base64.RawStdEncoding.DecodeString(text[:len(text)-len(text)%4]) // nil if it is not base64
	return data
}

// isSentence is true for a sentence of ASCII letters.
func isSentence(data []byte) bool {
	letters, spaces := 0, 0
	for _, c := range data {
		switch {
		case c == ' ':
			spaces++
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			letters++
		case c < ' ' && c != '\n' || c > '~':
			return false
		}
	}
	return spaces >= 2 && letters*10 >= len(data)*7
}

func isMixedCase(s string) bool {
	return strings.ContainsAny(s, "0123456789") && strings.ToLower(s) != s && strings.ToUpper(s) != s
}

var (
	// toolNamePattern matches a name that is not a plain word; the others match orders about it.
	toolNamePattern = regexp.MustCompile(`[a-z][a-z0-9]*([_.-][a-z0-9]+)+`)
	insteadPattern  = regexp.MustCompile(`\b(instead of|rather than|never (use|call|invoke)|do not (use|call|invoke)|don't (use|call|invoke))\b`)
	orderPattern    = regexp.MustCompile(`\b(always|must|never|instead|first|also|before|whenever|do not|every|make sure|ensure|bcc)\b`)
)

// checkOtherTools finds a sentence that gives orders about a tool of another upstream.
func (in *inspector) checkOtherTools(where, text string) {
	if len(in.others) == 0 {
		return
	}
	for sentence := range strings.SplitSeq(strings.ReplaceAll(text, "; ", ". "), ". ") {
		if !orderPattern.MatchString(sentence) {
			continue
		}
		for _, name := range toolNamePattern.FindAllString(sentence, -1) {
			if bare := name[strings.LastIndexByte(name, '.')+1:]; in.others[name] || strings.ContainsAny(bare, "_-") && in.others[bare] {
				in.addWeak("another upstream's tool", where, sentence)
				if insteadPattern.MatchString(sentence) {
					in.addWeak("pushes a tool aside", where, sentence)
				}
			}
		}
	}
}
