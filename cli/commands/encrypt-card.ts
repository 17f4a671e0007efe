// `tokenmill encrypt-card`: encrypts a card as a card capture library would, for trials with curl. It needs only a
// public key, from a client's file or from the store.
import { existsSync } from 'node:fs'
import { readCaptureKeys, readClientFile } from '../../producers/client/client-file.ts'
import { newKeysPath, readNewKeys } from '../../producers/client/trusted-keys.ts'
import { storeMode } from '../../src/config.ts'
import * as captureKeys from '../../src/store/access/capture-keys.ts'
import { encryptCard, type PublicCaptureKey, readPublicCaptureKey } from '../../src/vault/capture/encrypt.ts'
import type { JsonOption } from '../command.ts'
import { EXIT, Stop } from '../exit.ts'
import { devClientPath } from '../open/dev-client.ts'
import { openCommandStore, type Session, withSession } from '../open/open.ts'
import { print, readAll, say, type Terminal } from '../terminal.ts'

interface Options extends JsonOption {
  alias: string
  withCvv?: boolean
  client?: string
}

const CARD_BYTES_MAX = 16 * 1024

export function encrypt(terminal: Terminal, options: Options): Promise<void> {
  return withSession(terminal, async session => {
    const key = await findKey(session, options)
    if ((terminal.stdin as { isTTY?: boolean }).isTTY)
      say(terminal, 'Card JSON, then Ctrl-D: {"cardNumber":"4111111111111111","expiryMonth":12,"expiryYear":2030}')
    const { cvv, ...card } = parseCard(await readAll(terminal, CARD_BYTES_MAX))
    const captured = { ...card, captureTime: card['captureTime'] ?? new Date().toISOString() }
    if (cvv !== undefined && !options.withCvv) say(terminal, 'The cvv is left out; --with-cvv keeps it.')
    const plain = options.withCvv && cvv !== undefined ? { ...captured, cvv } : captured
    const encrypted = await encryptCard(plain, key)
    print(terminal, options, { encrypted_card: encrypted, public_key_alias: key.alias }, encrypted)
  })
}

function parseCard(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  } catch {
    // The parser's message would quote the card, so it isn't used.
  }
  throw new Stop(
    'standard input is not a JSON object such as {"cardNumber":"…","expiryMonth":12,"expiryYear":2030}',
    EXIT.usage,
  )
}

async function findKey(session: Session, { alias, client }: Options): Promise<PublicCaptureKey> {
  const { config } = session
  const ready = devClientPath(config)
  // With the file of the ready-made client no database is needed; a host that only produces has nothing but its
  // client's file.
  const path = client ?? (existsSync(ready) || storeMode(config) === 'none' ? ready : undefined)
  const near = path === undefined ? undefined : await findInFile(path, alias)
  if (near) return near
  if (client !== undefined || storeMode(config) === 'none')
    throw new Stop(`${path} has no capture key with the alias ${alias}; use an alias of that file`)
  const { store } = await openCommandStore(session)
  const newest = await captureKeys.find(store, alias)
  if (!newest) throw new Stop('There is no such capture key; `tokenmill capture-key list` lists them.')
  const key = (await captureKeys.listHandedOut(store, newest.entityId)).find(one => one.alias === alias)
  if (!key) throw new Stop(`This capture key is ${newest.state.toLowerCase()}; use one that is active.`)
  return readPublicCaptureKey(alias, key.publicKey)
}

async function findInFile(path: string, alias: string): Promise<PublicCaptureKey | undefined> {
  const newKeys = await readNewKeys(newKeysPath(path))
  const { jwe, pgp } = await readCaptureKeys(path, await readClientFile(path), newKeys)
  return [jwe, pgp].find(key => key?.alias === alias)
}
