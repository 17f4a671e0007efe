// The form of the search on its page, and what can be looked up by it.
import { command } from '../figures.ts'
import { type Html, html } from '../html.ts'

export function explainContent(): Html {
  return html`<form class="look-up" method="post" action="/search">
<label for="what">What happened to</label>
<input id="what" name="what" maxlength="300" autocomplete="off" spellcheck="false" required>
<button class="main" type="submit">Explain</button>
</form>
<dl class="facts names">
<div><dt>A job</dt><dd>its <code>jti</code> (over HTTP: the idempotency key), its reference, the id of its receipt or operation, or its id in the failed set</dd></div>
<div><dt>A token</dt><dd>as senders know it, or its UUID; not the value of a third party’s token</dd></div>
<div><dt>A batch</dt><dd>its id</dd></div>
</dl>
<p class="muted">A number of 12 to 19 digits that could be a card number is looked up as a reference only. Of a name that many jobs share, only the newest 500 are looked at.</p>
<p class="same">A row of a batch’s file, and the reference of a job in the failed set, are found on the command line only: ${command('tokenmill', 'explain', 'BATCH', 'LINE')}</p>`
}
