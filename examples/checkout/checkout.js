// The page's side of a payment: the card is encrypted here, and what is sent to the shop's server is ciphertext. JWT, lookup,
// challenge, validation and token go through that server, which holds the credentials.
import { encryptCard } from './jwe.js'

const form = document.getElementById('checkout')
const dialog = document.getElementById('challenge')
const leave = document.getElementById('leave')
const settings = await call('GET', '/api/settings')
/** This device's clock may be wrong, and a card is good for 15 minutes. */
const ahead = settings.now - Date.now()

show('price', settings.price)

form.addEventListener('submit', async event => {
  event.preventDefault()
  if (!check()) return
  const button = document.getElementById('pay')
  button.disabled = true
  document.getElementById('steps').replaceChildren()
  document.getElementById('progress').hidden = false
  show('failure', '')
  try {
    finish(await pay(Object.fromEntries(new FormData(form))))
  } catch (error) {
    document.querySelector('#steps li:last-child')?.classList.add('failed')
    show('failure', error instanceof Refused ? error.message : 'Something went wrong. Please try again.')
    if (!(error instanceof Refused)) console.error(error)
    button.disabled = false
    button.focus()
  }
})

async function pay(fields) {
  const encrypted = await step('Encrypting the card in this browser', () => encrypt(fields))
  const { jwt } = await step('Beginning a session', () => call('POST', '/api/jwt', {}))
  const found = await step('Asking your bank', () =>
    call('POST', '/api/lookup', { ...encrypted, ...billing(fields), ...device(jwt) }),
  )
  const outcome =
    found.pares_status === 'C'
      ? await step('Waiting for you to confirm', async () => {
          const back = await challenge(found)
          return (await call('POST', '/api/validate', { jwt: back.jwt })).validation_result.pares_status
        })
      : found.pares_status
  if (outcome !== 'Y' && outcome !== 'A') throw new Refused(found.cardholder_info ?? OUTCOMES[outcome] ?? OUTCOMES.U)
  return { outcome, ...(await step('Keeping the card', () => call('PUT', '/api/card', {}))) }
}

const OUTCOMES = {
  Y: 'Confirmed by your bank',
  A: 'Attempted; your bank takes no part yet',
  N: 'Your bank did not confirm this payment.',
  R: 'Your bank refuses this payment.',
  U: 'Your bank could not be asked. Please try another card.',
}

async function encrypt({ number, expiry, cvv, first, last }) {
  const answer = await fetch(settings.capture_keys)
  const { keys } = await answer.json()
  const key = keys.find(({ alg }) => alg === 'RSA-OAEP-256')
  const [month, year] = expiry.split('/')
  const card = {
    cardNumber: digits(number),
    cardholderName: `${first} ${last}`.slice(0, 30),
    expiryMonth: Number(month),
    expiryYear: 2000 + Number(year),
    cvv,
    captureTime: new Date(Date.now() + ahead).toISOString(),
  }
  return { encrypted_card: await encryptCard(card, key), public_key_alias: key.kid }
}

const billing = ({ first, last, email, street, city, country }) => ({
  billing_first_name: first,
  billing_last_name: last,
  billing_address_1: street,
  billing_city: city,
  billing_country_code: country,
  email,
})

/** What EMV 3-D Secure knows. Some screens report others, 30 among them: the next lower is said. */
const COLOR_DEPTHS = [48, 32, 24, 16, 15, 8, 4, 1]

/** The session is named by the JWT's own id. What a server can't see of a browser. */
function device(jwt) {
  const { jti } = JSON.parse(atob(jwt.split('.')[1].replaceAll('-', '+').replaceAll('_', '/')))
  return {
    device_info_id: jti,
    device_data_info: {
      browser_java_enabled: false,
      browser_javascript_enabled: true,
      browser_language: navigator.language,
      browser_color_depth: COLOR_DEPTHS.find(depth => depth <= screen.colorDepth) ?? 1,
      browser_screen_height: screen.height,
      browser_screen_width: screen.width,
      browser_time_zone: new Date().getTimezoneOffset(),
    },
  }
}

/** The bank's page in a frame, until the 3-D Secure service says from that frame that the browser is back. */
function challenge({ acs_url, payload }) {
  return new Promise((resolve, reject) => {
    const frame = dialog.querySelector('iframe')
    const done = settle => {
      window.removeEventListener('message', told)
      dialog.removeEventListener('cancel', left)
      leave.removeEventListener('click', left)
      dialog.close()
      settle()
    }
    const told = ({ origin, source, data }) => {
      if (origin !== settings.three_ds_origin || source !== frame.contentWindow) return
      if (data?.type === 'tokenmill.three-ds') done(() => resolve(data))
    }
    const left = () => done(() => reject(new Refused('You left your bank’s page. Nothing was paid.')))
    window.addEventListener('message', told)
    dialog.addEventListener('cancel', left)
    leave.addEventListener('click', left)
    dialog.showModal()
    frame.focus()
    const post = document.createElement('form')
    Object.assign(post, { method: 'post', action: acs_url, target: frame.name, hidden: true })
    const creq = document.createElement('input')
    Object.assign(creq, { name: 'creq', value: payload })
    post.append(creq)
    document.body.append(post)
    post.submit()
    post.remove()
  })
}

function finish({ outcome, token, card }) {
  show('outcome', OUTCOMES[outcome])
  show('card', card)
  show('token', token)
  form.hidden = true
  document.getElementById('cards').hidden = true
  const done = document.getElementById('done')
  done.hidden = false
  done.focus()
}

async function step(text, work) {
  const item = document.createElement('li')
  item.textContent = text
  document.getElementById('steps').append(item)
  const result = await work()
  item.classList.add('done')
  return result
}

class Refused extends Error {}

async function call(method, path, body) {
  const answer = await fetch(path, {
    method,
    ...(body ? { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) } : {}),
  })
  const said = await answer.json()
  if (!answer.ok) throw new Refused(said.message ?? 'The shop could not do this. Please try again.')
  return said
}

/** What is wrong stands beside its field; the first wrong one gets the focus. */
function check() {
  const wrong = Object.entries(RULES).filter(([name, rule]) => {
    const field = form.elements[name]
    const text = rule(field.value.trim(), field)
    show(`${name}-error`, text ?? '')
    if (text) field.setAttribute('aria-invalid', 'true')
    else field.removeAttribute('aria-invalid')
    return text
  })
  if (wrong.length > 0) form.elements[wrong[0][0]].focus()
  return wrong.length === 0
}

const given = value => (value === '' ? 'Please fill this in.' : undefined)
const RULES = {
  number: value => given(value) ?? (isCardNumber(digits(value)) ? undefined : 'This is not a card number.'),
  expiry: value => given(value) ?? (isToCome(value) ? undefined : 'A month and a year to come: MM/YY.'),
  cvv: value => given(value) ?? (/^\d{3,4}$/.test(value) ? undefined : 'Three or four digits.'),
  first: given,
  last: given,
  email: (value, field) => given(value) ?? (field.validity.valid ? undefined : 'This is not an e-mail address.'),
  street: given,
  city: given,
}

const digits = text => text.replace(/\D/g, '')

function isCardNumber(number) {
  if (!/^\d{12,19}$/.test(number)) return false
  const sum = [...number].reverse().reduce((all, digit, index) => {
    const value = Number(digit) * (index % 2 === 0 ? 1 : 2)
    return all + (value > 9 ? value - 9 : value)
  }, 0)
  return sum % 10 === 0
}

function isToCome(text) {
  const [, month, year] = /^(0[1-9]|1[0-2])\/(\d\d)$/.exec(text) ?? []
  return month !== undefined && new Date(2000 + Number(year), Number(month)) > new Date()
}

form.elements.expiry.addEventListener('input', ({ target, inputType }) => {
  if (inputType?.startsWith('insert') && /^\d\d$/.test(target.value)) target.value += '/'
})
form.elements.number.addEventListener('input', ({ target, inputType }) => {
  if (!inputType?.startsWith('insert') || target.selectionStart !== target.value.length) return
  target.value = digits(target.value).replace(/(\d{4})(?=\d)/g, '$1 ')
})

function show(id, text) {
  document.getElementById(id).textContent = text
}
