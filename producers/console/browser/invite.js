// Makes the secret of an invite's link here, so that no server ever has it: the form gets what the store keeps of it. The secret
// waits in this tab until a worker has written the invite; then it is shown, once.
import { hashOf, keyOf, lookupOf, text, utf8 } from './link-secret.js'

const STORED = 'tokenmill link '

const form = document.querySelector('form:has(input[name=lookup_hash])')
const shown = document.querySelector('[data-link-of]')
let secret

if (form !== null) {
  prepare()
  // A page that a browser kept: its link may have been used.
  addEventListener('pageshow', event => event.persisted && prepare())
  // Before the module that asks for a passkey.
  form.addEventListener('submit', keep, { capture: true })
}
if (shown !== null) show()

function prepare() {
  for (const name of Object.keys(sessionStorage)) if (name.startsWith(STORED)) sessionStorage.removeItem(name)
  const { lookup_hash: lookup, public_key: key } = form.elements
  key.value = ''
  secret = text(crypto.getRandomValues(new Uint8Array(32)))
  fill(lookup, key).catch(() =>
    say('This browser is too old to make a link: it knows no Ed25519. Update it, or use the command below.'),
  )
}

async function fill(lookup, key) {
  lookup.value = await hashOf(utf8(await lookupOf(secret)))
  const { x } = await crypto.subtle.exportKey('jwk', await keyOf(secret, true))
  key.value = x
}

function keep(event) {
  const { lookup_hash: lookup, public_key: key } = form.elements
  if (key.value !== '') return sessionStorage.setItem(STORED + lookup.value, secret)
  event.preventDefault()
  event.stopImmediatePropagation()
  say('The link is not made yet. Try again in a moment; if that fails, this browser can not make one.')
}

function say(words) {
  const status = form.querySelector('[data-status]')
  status.textContent = words
  status.classList.add('bad')
}

function show() {
  const name = STORED + shown.dataset.linkOf
  const kept = sessionStorage.getItem(name)
  sessionStorage.removeItem(name)
  if (kept === null || shown.dataset.works !== 'yes') return
  const link = `${location.origin}/welcome#${kept}`
  shown.querySelector('[data-link]').textContent = link
  for (const part of shown.querySelectorAll('[data-shown]')) part.hidden = false
  shown.querySelector('[data-gone]').hidden = true
  const said = shown.querySelector('[data-copied]')
  shown.querySelector('[data-copy]').addEventListener('click', async () => {
    const isCopied = await navigator.clipboard.writeText(link).then(
      () => true,
      () => false,
    )
    // An empty region first: the same words twice are told twice.
    said.textContent = ''
    said.textContent = isCopied ? 'Copied' : 'Not copied: select the link and copy it yourself'
  })
}
