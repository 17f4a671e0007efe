// The shop's server: serves the page, and calls tokenmill with the merchant's credentials, which no browser may hold. What
// is bought and what it costs is decided here; of the card it sees ciphertext. An example: orders live in memory.
import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { connectHttp, HttpError } from 'tokenmill-client'
import { findContract } from './contract.mjs'

const { CHECKOUT_PORT = '8090', CHECKOUT_CLIENT, CHECKOUT_THREE_DS = 'http://127.0.0.1:8081' } = process.env
const own = `http://127.0.0.1:${CHECKOUT_PORT}`
const clientFile = CHECKOUT_CLIENT ?? `${process.env.TOKENMILL_DATA_DIR ?? '.tokenmill'}/dev-client.json`
const client = JSON.parse(await readFile(clientFile, 'utf8'))
const contractId =
  process.env.CHECKOUT_CONTRACT ??
  (await findContract({ entity: client.entity_id, shop: own, threeDs: CHECKOUT_THREE_DS }))
const tokens = await connectHttp({ clientFile })
const authorization = `Basic ${Buffer.from(`${client.user_id}:${client.api_key}`).toString('base64')}`

const AMOUNT = { amount: 1_250, currency_code: 'EUR' }
const FILES = {
  '/': ['index.html', 'text/html'],
  '/checkout.css': ['checkout.css', 'text/css'],
  '/checkout.js': ['checkout.js', 'text/javascript'],
  '/jwe.js': ['jwe.js', 'text/javascript'],
}
/** The bank's page may lie anywhere: the frame and the form that opens it are free, everything else is ours. */
const POLICY = [
  "default-src 'none'; script-src 'self'; style-src 'self'; base-uri 'none'; frame-ancestors 'none'",
  `connect-src 'self' ${new URL(client.base_url).origin}; frame-src https: http:; form-action https: http:`,
].join('; ')
const BODY_BYTES_MAX = 64 * 1024
const ORDERS_MAX = 1_000

/** By the cookie of the browser. */
const orders = new Map()

function orderOf(request) {
  const id = /(?:^|; )order=([0-9a-f-]{36})/.exec(request.headers.cookie ?? '')?.[1]
  return orders.get(id)
}

function beginOrder() {
  const id = randomUUID()
  const [oldest] = orders.keys()
  if (orders.size >= ORDERS_MAX) orders.delete(oldest)
  orders.set(id, { reference: `order-${id.slice(0, 8)}` })
  return id
}

async function threeDs(path, body, key) {
  const answer = await fetch(`${CHECKOUT_THREE_DS}/oidc/3ds-service/v2/${path}`, {
    method: 'POST',
    headers: { authorization, 'content-type': 'application/json', ...(key ? { 'idempotency-key': key } : {}) },
    body: JSON.stringify(body),
  })
  return { status: answer.status, body: await answer.json() }
}

const API = {
  async 'GET /api/settings'() {
    const id = beginOrder()
    const body = {
      price: (AMOUNT.amount / 100).toLocaleString('en', { style: 'currency', currency: AMOUNT.currency_code }),
      capture_keys: `${client.base_url}/.well-known/capture-keys?entity_id=${client.entity_id}`,
      three_ds_origin: new URL(CHECKOUT_THREE_DS).origin,
      now: Date.now(),
    }
    return { status: 200, body, headers: { 'set-cookie': `order=${id}; Path=/; HttpOnly; SameSite=Strict` } }
  },

  'POST /api/jwt': () => threeDs('jwt/create', { threeds_contract_id: contractId }),

  async 'POST /api/lookup'({ order, sent, request }) {
    const { encrypted_card, public_key_alias, device_info_id, device_data_info, email, ...rest } = sent
    const billing = Object.fromEntries(Object.entries(rest).filter(([name]) => name.startsWith('billing_')))
    const body = {
      ...billing,
      ...AMOUNT,
      email,
      encrypted_card,
      public_key_alias,
      device_info_id,
      device_data_info: {
        ...device_data_info,
        user_agent: request.headers['user-agent'],
        browser_header: request.headers.accept ?? '*/*',
        ip_address: request.socket.remoteAddress,
      },
      // 390 by 400: the frame has room for it on a phone, too.
      acs_window_size: '02',
      merchant_reference: order.reference,
      threeds_contract_id: contractId,
    }
    const answer = await threeDs('lookup', body, randomUUID())
    // The browser isn't asked later which card it was, nor how it ended.
    order.card = { encrypted_card, public_key_alias }
    order.authenticationId = answer.body.authentication_id
    order.isProven = isProof(answer.body.pares_status)
    const { pares_status, acs_url, payload, cardholder_info, message } = answer.body
    return { status: answer.status, body: { pares_status, acs_url, payload, cardholder_info, message } }
  },

  async 'POST /api/validate'({ order, sent }) {
    const body = { authentication_id: order.authenticationId, jwt: sent.jwt, threeds_contract_id: contractId }
    const answer = await threeDs('jwt/validate', body)
    order.isProven = answer.status === 201 && isProof(answer.body.validation_result.pares_status)
    return answer
  },

  async 'PUT /api/card'({ order }) {
    if (!order.isProven) return { status: 403, body: { message: 'This payment was not confirmed.' } }
    // The authentication names the request: a second click makes no second token, and another card is another request.
    const made = await tokens
      .createToken(order.card, { idempotencyKey: order.authenticationId })
      .catch(error => (error instanceof HttpError ? error : Promise.reject(error)))
    if (made instanceof HttpError)
      return { status: made.status, body: { message: made.message, details: made.details } }
    const { reuse_token, bin, last_four, expiry_month, expiry_year } = made
    const expiry = `${String(expiry_month).padStart(2, '0')}/${expiry_year % 100}`
    return { status: 200, body: { token: reuse_token, card: `${bin.slice(0, 4)} … ${last_four}, ${expiry}` } }
  },
}
const isProof = status => status === 'Y' || status === 'A'

async function bodyOf(request) {
  let text = ''
  for await (const chunk of request.setEncoding('utf8')) {
    text += chunk
    if (text.length > BODY_BYTES_MAX) throw new Error('too long')
  }
  return text === '' ? {} : JSON.parse(text)
}

async function answer(request) {
  const { pathname } = new URL(request.url ?? '/', own)
  const file = request.method === 'GET' ? FILES[pathname] : undefined
  if (file) {
    const [name, type] = file
    const headers = { 'content-type': `${type}; charset=utf-8`, 'content-security-policy': POLICY }
    return { status: 200, headers, text: await readFile(new URL(name, import.meta.url)) }
  }
  const operation = API[`${request.method} ${pathname}`]
  if (!operation) return { status: 404, body: { message: 'There is no such page.' } }
  if (request.method === 'GET') return operation({})
  // Only our own page may spend in the name of its visitor.
  const order = request.headers.origin === own ? orderOf(request) : undefined
  if (!order) return { status: 403, body: { message: 'This order is over. Please load the page again.' } }
  return operation({ order, request, sent: await bodyOf(request) })
}

const server = createServer(async (request, response) => {
  // The contract knows the shop by this one name, and so does the 3-D Secure service's page.
  if (request.method === 'GET' && request.headers.host !== new URL(own).host)
    return response.writeHead(302, { location: `${own}/` }).end()
  const { status, body, text, headers } = await answer(request).catch(error => {
    console.error(error)
    return { status: 500, body: { message: 'Something went wrong. Please try again.' } }
  })
  const plain = { 'content-type': 'application/json', 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' }
  response.writeHead(status, { ...plain, ...headers }).end(text ?? JSON.stringify(body))
})
server.listen(Number(CHECKOUT_PORT), '127.0.0.1', () => console.log(`The shop is open: ${own}`))
