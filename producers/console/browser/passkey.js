// Asks for a passkey where a form needs one: the form names where its challenge comes from, and its hidden field gets the
// proof. It writes texts only, never markup. Pages are read without it.

const form = document.querySelector('form[data-begin]')
const status = form.querySelector('[data-status]')
const button = form.querySelector('button[type=submit]')
// The secret of an invite is in the fragment, which no server and no log sees; it leaves the address bar at once.
const secret = form.dataset.secret === undefined ? undefined : takeFragment()

if (secret === '') say('This link is not whole. Open the link that you were given again.', true)
else button.disabled = false

form.addEventListener('submit', event => {
  event.preventDefault()
  button.disabled = true
  prove().catch(error => {
    say(wordsOf(error), true)
    button.disabled = false
  })
})

async function prove() {
  say('One moment.')
  const asked = { ...Object.fromEntries(new FormData(form)), ...(secret === undefined ? {} : { secret }) }
  delete asked.proof
  const answer = await fetch(form.dataset.begin, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(asked),
  })
  const begun = await answer.json()
  if (!answer.ok) throw new Refused(begun.text)
  if (begun.get || begun.create) say('Use your passkey.')
  const proof = begun.get ? await assertion(begun.get) : begun.create ? await attestation(begun.create) : {}
  form.elements.proof.value = JSON.stringify({ ...proof, ...(secret === undefined ? {} : { secret }) })
  if (begun.nonce !== undefined) form.elements.nonce.value = begun.nonce
  say('Sending.')
  form.submit()
}

async function assertion(asked) {
  const { rawId, response } = await navigator.credentials.get({
    publicKey: {
      ...asked,
      challenge: bytes(asked.challenge),
      allowCredentials: asked.allowCredentials.map(known => ({ type: 'public-key', id: bytes(known) })),
    },
  })
  return {
    credential_id: text(rawId),
    client_data_json: text(response.clientDataJSON),
    authenticator_data: text(response.authenticatorData),
    signature: text(response.signature),
  }
}

async function attestation(asked) {
  const { rawId, response } = await navigator.credentials.create({
    publicKey: { ...asked, challenge: bytes(asked.challenge), user: { ...asked.user, id: bytes(asked.user.id) } },
  })
  return {
    credential_id: text(rawId),
    client_data_json: text(response.clientDataJSON),
    attestation_object: text(response.attestationObject),
  }
}

class Refused extends Error {}

function wordsOf(error) {
  if (error instanceof Refused) return error.message
  if (error.name === 'NotAllowedError')
    return 'The passkey was not used: it was refused, or it took too long. Nothing was done.'
  if (error.name === 'InvalidStateError') return 'This device has a passkey for this person already.'
  return 'The console did not answer. Nothing was done.'
}

function say(words, isBad = false) {
  status.textContent = words
  status.classList.toggle('bad', isBad)
}

function takeFragment() {
  const taken = location.hash.slice(1)
  history.replaceState(null, '', location.pathname)
  return taken
}

function bytes(base64url) {
  const plain = atob(base64url.replaceAll('-', '+').replaceAll('_', '/'))
  return Uint8Array.from(plain, character => character.charCodeAt(0))
}

function text(buffer) {
  const plain = Array.from(new Uint8Array(buffer), byte => String.fromCharCode(byte)).join('')
  return btoa(plain).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
}
