// What a program gives the client over HTTP by mistake is refused before anything is sent, and named.
import { expect, it } from 'vitest'
import { RefusedError } from '../../../producers/client/errors.ts'
import { openHttpClient } from '../../../producers/http-client/http-client.ts'
import type { HttpOptions } from '../../../producers/http-client/interface.ts'
import { systemClock } from '../../../src/clock.ts'
import { SILENT } from '../../../src/logger.ts'

const ID = '6a1f6f0e-3a52-4c3b-9a57-0c1d2e3f4a5b'
const FILE = {
  client_id: 'c0123456789abcdefghijklmno',
  user_id: ID,
  api_key: 'an-api-key',
  entity_id: ID,
  signing_key_file: null,
  token_scope: ID,
  capture_keys: {},
  base_url: 'http://127.0.0.1:8080/oidc',
  audience: 'tokenmill',
  installation_keys: { keys: [] },
}
const CARD = { cardNumber: '4111111111111111', expiryMonth: 12, expiryYear: 2034 }

const sent: string[] = []
const refusing: typeof fetch = async (url, init) => {
  sent.push(`${init?.method} ${url}`)
  return new Response('{"message":"No."}', { status: 404 })
}
const open = (options: HttpOptions = {}) =>
  openHttpClient({ credentials: { file: FILE }, fetch: refusing, ...options }, { clock: systemClock, log: SILENT })

it('a card whose member has a wrong name is not encrypted', async () => {
  const client = await open()
  const mistaken = { cardNumber: CARD.cardNumber, expiry: '12/34' }
  const refused = client.createToken({ card: mistaken })
  await expect(refused).rejects.toBeInstanceOf(RefusedError)
  await expect(refused).rejects.toThrow(
    /^not sent: body\.card\.expiry: field_unknown\. A card has cardNumber, expiryMonth/,
  )
  expect(sent.filter(request => request.startsWith('PUT'))).toEqual([])
})

it.each([
  [{ kind: 'token-create', batch_id: 'b' }, 'batchId: name the list with 1 to 56 letters, digits, _ and -'],
  [{ kind: 'token-create', batchId: 'my list' }, 'batchId: name the list'],
  [{ batchId: 'b' }, 'kind: it is one of token-create, token-update'],
  [{ kind: 'token-crate', batchId: 'b' }, 'kind: it is one of token-create'],
])('a list with the options %j is not sent', async (options, says) => {
  const client = await open()
  await expect(client.batch(options as never, [{ card: CARD }]).next()).rejects.toThrow(says)
})

it('an id that isn’t a text is most often a promise without await', async () => {
  const client = await open()
  const id = undefined as unknown as string
  expect(() => client.getToken(id)).toThrow('id is undefined, not the text of an id; is an `await` missing?')
})

it.each(['127.0.0.1:8080', 'localhost:8080', 'redis://127.0.0.1:6379'])('%s is no base URL', async baseUrl => {
  await expect(open({ baseUrl })).rejects.toThrow('`baseUrl` is not a URL: https://host or http://127.0.0.1:8080')
})

it('a client’s file that isn’t there is one of the operator’s', async () => {
  const options = { clientFile: 'nowhere.json', fetch: refusing }
  const opened = openHttpClient(options, { clock: systemClock, log: SILENT })
  await expect(opened).rejects.toThrow(/^nowhere\.json is not there: name the file that the operator made/)
})
