// Asks for a passkey where a form needs one: the form names where its challenge comes from, and its hidden field gets the
// proof. It writes texts only, never markup. Pages are read without it.
import { hashOf, keyOf, lookupOf, text, utf8 } from './link-secret.js'

const form = document.querySelector('form[data-begin]')
const status = form.querySelector('[data-status]')
const button = form.querySelector('button[type=submit]')
// The secret of a link is in the fragment, which no server and no log sees; it leaves the address bar at once, and never leaves
// this page. What is sent is derived from it (src/vault/passkey/invite-key.ts).
const secret = form.dataset.secret === undefined ? undefined : takeFragment()

if (secret === '') say('This link is not whole. Open the link that you were given again.', true)
else button.disabled = false

form.addEventListener('submit', event => {
  event.preventDefault()
  button.disabled = true
  prove().catch(error => {
    say(wordsOf(error), true)
    button.disabled = false
    // A button that is disabled loses the focus.
    button.focus()
  })
})

async function prove() {
  say('One moment.')
  const link = secret === undefined ? {} : { lookup: await lookupOf(secret) }
  const asked = { ...Object.fromEntries(new FormData(form)), ...link }
  delete asked.proof
  const begun = await post(form.dataset.begin, asked)
  const proof = (await proofOf(begun)) ?? link
  form.elements.proof.value = JSON.stringify(proof)
  if (begun.nonce !== undefined) form.elements.nonce.value = begun.nonce
  say('Sending.')
  form.submit()
}

async function post(to, asked) {
  const answer = await fetch(to, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(asked),
  })
  const said = await answer.json()
  if (!answer.ok) throw new Refused(said.text)
  return said
}

/** Undefined: the link itself is the proof. */
async function proofOf({ nonce, get, create }) {
  if (get) return assertion(get, 'Use your passkey.')
  if (!create) return undefined
  return form.dataset.touch === undefined ? enrolment(create) : addition(nonce, create)
}

/** A new passkey, and the touch of one that the person has, which covers the new one. */
async function addition(nonce, asked) {
  say('Make the new passkey.')
  const { rawId, response } = await creation(asked)
  const { attestationObject, clientDataJSON } = response
  const made = {
    credential_id: text(rawId),
    client_data_json: text(clientDataJSON),
    attestation_object: text(attestationObject),
  }
  const { get } = await post(form.dataset.touch, { nonce, made })
  return assertion(get, 'Now use a passkey that you have already, to confirm the new one.')
}

function creation(asked) {
  return navigator.credentials.create({
    publicKey: {
      ...asked,
      challenge: bytes(asked.challenge),
      user: { ...asked.user, id: bytes(asked.user.id) },
      excludeCredentials: asked.excludeCredentials.map(known => ({ type: 'public-key', id: bytes(known) })),
    },
  })
}

async function assertion(asked, words) {
  say(words)
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

/** A new passkey, signed with the key in the link. */
async function enrolment(asked) {
  // Before the touch: a browser without Ed25519 would leave a passkey that opens nothing.
  const key = await keyOf(secret)
  say('Use your passkey.')
  const { rawId, response } = await creation(asked)
  const { attestationObject, clientDataJSON } = response
  const hashes = [await hashOf(attestationObject), await hashOf(clientDataJSON)]
  const signed = utf8(['tokenmill person.enrol', asked.challenge, ...hashes].join('\n'))
  return {
    signature: text(await crypto.subtle.sign('Ed25519', key, signed)),
    credential_id: text(rawId),
    client_data_json: text(clientDataJSON),
    attestation_object: text(attestationObject),
  }
}

class Refused extends Error {}

function wordsOf(error) {
  if (error instanceof Refused) return error.message
  if (error.name === 'NotAllowedError')
    return 'The passkey was not used: it was refused, or it took too long. Nothing was done.'
  if (error.name === 'NotSupportedError')
    return 'This browser is too old for an invite. Update it, or open the link in another one. Nothing was done.'
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
