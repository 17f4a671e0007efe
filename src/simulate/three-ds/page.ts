// The pages that a cardholder sees of the simulated access control server: one field and two buttons in plain HTML.
// They work by keyboard and on a phone, and load nothing from elsewhere.

interface ChallengePage {
  /** The URL to which the form is submitted. */
  action: string
  merchant: string
  amount: string
  lastFour: string
  /** The right code. The page shows it, because this is a rehearsal. */
  code: string
  /** Why the last code was wrong. */
  error?: string
}

export function challengePage(
  { action, merchant, amount, lastFour, code, error }: ChallengePage,
  nonce: string,
): string {
  const problem = error === undefined ? '' : `<p class="error" id="error" role="alert">${escaped(error)}</p>`
  const described = error === undefined ? 'hint' : 'error hint'
  return page(
    'Confirm your payment',
    nonce,
    `<h1>Confirm your payment</h1>
<dl>
<div><dt>Merchant</dt><dd>${escaped(merchant)}</dd></div>
<div><dt>Amount</dt><dd>${escaped(amount)}</dd></div>
<div><dt>Card</dt><dd>ending in ${escaped(lastFour)}</dd></div>
</dl>
<form method="post" action="${escaped(action)}">
<label for="code">One-time code</label>
<input id="code" name="code" inputmode="numeric" autocomplete="one-time-code" maxlength="10" aria-describedby="${described}"${
      error === undefined ? '' : ' aria-invalid="true"'
    } autofocus>
${problem}
<p class="hint" id="hint">This is a simulator. No message was sent; the code is ${escaped(code)}.</p>
<div class="buttons">
<button type="submit" name="do" value="confirm">Confirm</button>
<button type="submit" name="do" value="cancel" class="quiet">Cancel payment</button>
</div>
</form>`,
  )
}

/** A page that returns the browser to the shop: by script, or by a button if scripts are off. */
export function returnPage(notificationUrl: string, fields: Record<string, string>, nonce: string): string {
  const inputs = Object.entries(fields).map(
    ([name, value]) => `<input type="hidden" name="${escaped(name)}" value="${escaped(value)}">`,
  )
  return page(
    'Returning to the shop',
    nonce,
    `<h1>Thank you</h1>
<p>You are being returned to the shop.</p>
<form method="post" action="${escaped(notificationUrl)}" id="return">
${inputs.join('\n')}
<div class="buttons"><button type="submit">Return to the shop</button></div>
</form>
<script nonce="${nonce}">document.getElementById('return').submit()</script>`,
  )
}

export function messagePage(text: string, nonce: string): string {
  return page('Nothing to confirm', nonce, `<h1>Nothing to confirm</h1>\n<p>${escaped(text)}</p>`)
}

const STYLE = `:root{color-scheme:light dark}
*{box-sizing:border-box}
body{margin:0;font:1rem/1.5 system-ui,sans-serif;color:#1a1a1a;background:#f4f4f5}
main{max-width:26rem;margin:0 auto;padding:1.25rem;background:#fff;min-height:100vh}
h1{font-size:1.25rem;line-height:1.3;margin:0 0 1rem}
dl{margin:0 0 1.25rem;border-top:1px solid #d4d4d8}
dl div{display:flex;justify-content:space-between;gap:1rem;padding:.5rem 0;border-bottom:1px solid #d4d4d8}
dt{color:#52525b}dd{margin:0;text-align:right;overflow-wrap:anywhere;font-weight:600}
label{display:block;font-weight:600;margin-bottom:.25rem}
input[name=code]{width:100%;padding:.75rem;font:inherit;font-size:1.25rem;letter-spacing:.1em;color:inherit;background:transparent;border:1px solid #71717a;border-radius:.375rem}
.hint{color:#52525b;margin:.5rem 0 0}.error{color:#b00020;font-weight:600;margin:.5rem 0 0}
.buttons{display:flex;flex-direction:column;gap:.75rem;margin-top:1.25rem}
button{width:100%;min-height:3rem;padding:.5rem 1rem;font:inherit;font-weight:600;color:#fff;background:#1d4ed8;border:1px solid #1d4ed8;border-radius:.375rem;cursor:pointer}
button.quiet{color:#1d4ed8;background:transparent}
:focus-visible{outline:3px solid #f59e0b;outline-offset:2px}
@media (prefers-color-scheme:dark){body{color:#f4f4f5;background:#18181b}main{background:#27272a}dt,.hint{color:#d4d4d8}.error{color:#ffb4ab}dl,dl div{border-color:#52525b}button.quiet{color:#a5c0ff;border-color:#a5c0ff}}`

function page(title: string, nonce: string, body: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(title)}</title>
<style nonce="${nonce}">${STYLE}</style>
</head>
<body>
<main>
${body}
</main>
</body>
</html>
`
}

/**
 * The Content-Security-Policy: only this page's own parts run; forms may be submitted to any address, because the
 * shop's isn't known here.
 */
export function pagePolicy(nonce: string): string {
  return `default-src 'none'; style-src 'nonce-${nonce}'; script-src 'nonce-${nonce}'; base-uri 'none'; form-action *`
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, found => `&#${found.charCodeAt(0)};`)
}
