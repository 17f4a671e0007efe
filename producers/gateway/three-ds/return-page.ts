// The pages that a browser gets on its way back from a challenge. `backPage` passes the JWT of the outcome to the shop: to
// the surrounding window if the page is in a frame, else by a form. If scripts are off, the user presses a button. The other
// pages say that the outcome isn't there yet, or that no authentication belongs to the request.

export interface Page {
  html(nonce: string): string
  /** The origin of the shop: only this shop may frame the page and receive its message. */
  shop?: string
}

/** The page. `requestorUrl`: the shop's address in its contract. */
export function backPage(
  requestorUrl: string,
  { authenticationId, jwt }: { authenticationId: string; jwt: string | undefined },
): Page {
  const shop = new URL(requestorUrl).origin
  const fields = { authentication_id: authenticationId, ...(jwt === undefined ? {} : { jwt }) }
  const message = JSON.stringify({ type: 'tokenmill.three-ds', ...fields })
  // The script reads the data from attributes, so that no data is written into code.
  const script = `const form = document.getElementById('back')
if (window.parent === window) form.submit()
else window.parent.postMessage(JSON.parse(form.dataset.message), form.dataset.shop)`
  return {
    shop,
    html: nonce =>
      frame(
        'Returning to the shop',
        nonce,
        `<h1>Returning to the shop</h1>
<p>If nothing happens, use the button.</p>
<form id="back" method="post" action="${escaped(requestorUrl)}" target="_top" data-shop="${escaped(shop)}" data-message="${escaped(message)}">
${hidden(fields)}
<button type="submit">Return to the shop</button>
</form>
<script nonce="${nonce}">${script}</script>`,
      ),
  }
}

const NO_RESULT = 'Your bank has not told us the result yet.'
/** The store, or whatever else the look-up needs, is away. */
export const NO_LOOKUP = 'We can not look up the result just now.'

/** The page while the result isn't known here: the browser can send the same form again. */
export function waitingPage(action: string, cres: string, why: string = NO_RESULT): Page {
  return {
    html: nonce =>
      frame(
        'One moment',
        nonce,
        `<h1>One moment</h1>
<p>${why}</p>
<form method="post" action="${escaped(action)}">
${hidden({ cres })}
<button type="submit" autofocus>Try again</button>
</form>`,
      ),
  }
}

export function strandedPage(): Page {
  return {
    html: nonce =>
      frame(
        'Nothing to return to',
        nonce,
        '<h1>Nothing to return to</h1>\n<p>This page belongs to no payment. Please go back to the shop.</p>',
      ),
  }
}

/** The Content-Security-Policy. If the shop isn't known, any page may frame this one; it then holds no secret. */
export function pagePolicy(nonce: string, shop: string | undefined): string {
  const own = `default-src 'none'; style-src 'nonce-${nonce}'; script-src 'nonce-${nonce}'; base-uri 'none'`
  return shop === undefined ? `${own}; form-action 'self'` : `${own}; form-action ${shop}; frame-ancestors ${shop}`
}

const STYLE = `:root{color-scheme:light dark}
body{margin:0 auto;max-width:26rem;padding:1.25rem;font:1rem/1.5 system-ui,sans-serif}
h1{font-size:1.25rem;line-height:1.3;margin:0 0 .75rem}
button{width:100%;min-height:3rem;padding:.5rem 1rem;font:inherit;font-weight:600;color:#fff;background:#1d4ed8;border:1px solid #1d4ed8;border-radius:.375rem;cursor:pointer}
:focus-visible{outline:3px solid #f59e0b;outline-offset:2px}`

function frame(title: string, nonce: string, body: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
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

function hidden(fields: Record<string, string>): string {
  return Object.entries(fields)
    .map(([name, value]) => `<input type="hidden" name="${escaped(name)}" value="${escaped(value)}">`)
    .join('\n')
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, found => `&#${found.charCodeAt(0)};`)
}
