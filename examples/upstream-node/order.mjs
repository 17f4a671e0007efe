// node order.mjs ORDER < card.json: keeps the card of an order as a token. `card.json`: {"cardNumber":"…","expiryMonth":12,…}.
// The order's number is the idempotency key: however often this runs, the order has one token.
import { text } from 'node:stream/consumers'
import { HttpError } from 'tokenmill-client'
import { openHttp } from './client.mjs'

const [order] = process.argv.slice(2)
if (!order) {
  console.error('usage: node order.mjs ORDER < card.json')
  process.exit(64)
}
const client = await openHttp()
try {
  const card = JSON.parse(await text(process.stdin))
  const { reuse_token, bin, last_four } = await client.createToken({ card }, { idempotencyKey: `order-${order}` })
  console.log(`${order} ${reuse_token} ${bin} … ${last_four}`)
} catch (error) {
  if (!(error instanceof HttpError)) throw error
  // It says what to do next.
  console.error(error.message)
  process.exitCode = 1
} finally {
  client.close()
}
