// One session with a token: opened, logged in, its key found. Only the token's own process uses it, and only once:
// if anything fails, the process ends and another one opens a new session.
import { createHash } from 'node:crypto'
import { ConfigError } from '../../config.ts'
import { bindPurpose, unbindPurpose } from '../kek/bound-plain.ts'
import { readOwnerOnly } from '../kek/owner-only.ts'
import type { Attribute, Binding, Handle, Module } from './binding.ts'
import { type FoundKey, wayOf } from './mechanism.ts'
import { TokenError, wordOf } from './token-error.ts'
import type { TokenKey } from './uri.ts'

const PROBE = 'tokenmill probe'

export interface TokenSession {
  /** The key's id, as `KeyProvider` has it. */
  id: string
  wrap(plain: Buffer, purpose: string): Buffer
  /** Throws `TokenError` of kind `bytes` if the purpose is another one. */
  unwrap(wrapped: Buffer, purpose: string): Buffer
  /** Logs out. It throws nothing. */
  close(): void
}

/** Throws `TokenError`. */
export async function openTokenSession(constants: Binding, wanted: TokenKey): Promise<TokenSession> {
  const module = new constants.PKCS11()
  loadModule(module, wanted)
  tried('the module does not start', () => module.C_Initialize())
  const slot = findToken(module, constants, wanted)
  const session = tried('the token opens no session', () => module.C_OpenSession(slot, constants.CKF_SERIAL_SESSION))
  const pin = await readPin(wanted.pinFile)
  tryPin(() => module.C_Login(session, constants.CKU_USER, pin), wanted)
  const key = findKey(module, constants, session, wanted)
  const found: FoundKey = { module, constants, session, key }
  const way = wayOf(wanted.mech)
  const id = prove(found, wanted)
  return {
    id,
    wrap: (plain, purpose) => {
      const bound = bindPurpose(plain, purpose)
      try {
        return tried(`the token does not wrap by mech=${wanted.mech}`, () =>
          way.wrap(found, bound, Buffer.from(purpose)),
        )
      } finally {
        bound.fill(0)
      }
    },
    unwrap: (wrapped, purpose) => {
      const bound = tried('the token does not unwrap', () => way.unwrap(found, wrapped, Buffer.from(purpose)))
      const plain = unbindPurpose(bound, purpose)
      bound.fill(0)
      if (!plain) throw new TokenError('bytes', 'the bytes were wrapped for another purpose')
      return plain
    },
    close: () => {
      try {
        module.C_Finalize()
      } catch {
        // The token is away: it has no session that could be left open.
      }
    },
  }
}

/**
 * The key's id, once the key has opened what it wrapped: a key that only wraps would make data keys that nobody can
 * open.
 */
function prove(found: FoundKey, { mech }: TokenKey): string {
  const way = wayOf(mech)
  const aad = Buffer.from(PROBE)
  try {
    const id = idOf(way.mark(found))
    const bound = bindPurpose(aad, PROBE)
    const opened = unbindPurpose(way.unwrap(found, way.wrap(found, bound, aad), aad), PROBE)
    if (opened?.equals(aad)) return id
  } catch (error) {
    if (error instanceof TokenError) throw error
    throw new TokenError(
      'config',
      `the key can not be used with mech=${mech} (${wordOf(error)}): it needs ${way.needs}`,
    )
  }
  throw new TokenError('config', `the key does not open what it wraps with mech=${mech}: it needs ${way.needs}`)
}

function idOf(mark: Buffer): string {
  return `kek-${createHash('sha256').update('tokenmill kek id ').update(mark).digest('hex').slice(0, 16)}`
}

function loadModule(module: Module, { modulePath }: TokenKey): void {
  try {
    module.load(modulePath)
  } catch (error) {
    const why = error instanceof Error ? error.message.split('\n')[0] : ''
    throw new TokenError('config', `module-path= ${modulePath} can not be loaded (${why})`)
  }
}

function findToken(module: Module, constants: Binding, { token, serial }: TokenKey): Handle {
  const slots = tried('the module lists no tokens', () => module.C_GetSlotList(true))
  const found = slots.flatMap(slot => {
    const info = tokenIn(module, slot)
    const isWanted = info?.label === token && (serial === undefined || info.serial === serial)
    return isWanted ? [{ slot, flags: info.flags }] : []
  })
  const [first, ...others] = found
  if (!first) throw new TokenError('away', `no token of this name is present: ${token}`)
  if (others.length > 0) throw new TokenError('config', `several tokens are named ${token}: add serial= to the URI`)
  if (first.flags & constants.CKF_USER_PIN_LOCKED)
    throw new TokenError('config', 'the PIN is locked: the security officer of the token sets a new one')
  // The last try belongs to a person, who can see what goes wrong.
  if (first.flags & constants.CKF_USER_PIN_FINAL_TRY)
    throw new TokenError('config', 'one try is left before the PIN is locked: log in once with the tools of the token')
  return first.slot
}

/** A slot may lose its token while it is asked. */
function tokenIn(module: Module, slot: Handle): { label: string; serial: string; flags: number } | undefined {
  try {
    const { label, serialNumber, flags } = module.C_GetTokenInfo(slot)
    return { label: trimmed(label), serial: trimmed(serialNumber), flags }
  } catch {
    return undefined
  }
}

/** PKCS#11 pads with blanks, some modules with zeros. */
const trimmed = (text: string) => text.replace(/[ \0]+$/, '')

function tryPin(logIn: () => void, { pinFile }: TokenKey): void {
  try {
    logIn()
  } catch (error) {
    const word = wordOf(error)
    if (word === 'CKR_USER_ALREADY_LOGGED_IN') return
    if (!word.startsWith('CKR_PIN_')) throw new TokenError('away', `the token accepts no login (${word})`)
    throw new TokenError(
      'pin',
      `the token refuses the PIN of ${pinFile} (${word}); it is not tried again until that file is written again`,
    )
  }
}

function findKey(module: Module, constants: Binding, session: Handle, { name, object, id }: TokenKey): Handle {
  const template: Attribute[] = [
    { type: constants.CKA_CLASS, value: constants.CKO_SECRET_KEY },
    { type: constants.CKA_KEY_TYPE, value: constants.CKK_AES },
  ]
  if (object !== undefined) template.push({ type: constants.CKA_LABEL, value: object })
  if (id !== undefined) template.push({ type: constants.CKA_ID, value: id })
  const [first, ...others] = tried('the token does not search', () => {
    module.C_FindObjectsInit(session, template)
    const keys = module.C_FindObjects(session, 2)
    module.C_FindObjectsFinal(session)
    return keys
  })
  if (!first) throw new TokenError('config', `the token has no such AES key: ${name}`)
  if (others.length > 0)
    throw new TokenError('config', `the token has several such keys: name one of them by object= and id= (${name})`)
  return first
}

function tried<T>(what: string, act: () => T): T {
  try {
    return act()
  } catch (error) {
    if (error instanceof TokenError) throw error
    throw new TokenError('away', `${what} (${wordOf(error)})`)
  }
}

const PIN_BYTES_MAX = 1024

/**
 * The first line of the PIN's file, read at each login, so that a PIN that was changed needs no restart. Throws
 * `TokenError` if the file is missing, or readable by others than its owner.
 */
async function readPin(path: string): Promise<string> {
  const bytes = await readOwnerOnly(path, PIN_BYTES_MAX, 'PIN of the token').catch((error: unknown) => {
    throw error instanceof ConfigError ? new TokenError('config', error.message) : error
  })
  const pin = /^[^\r\n]+/.exec(bytes.toString('utf8'))?.[0]
  bytes.fill(0)
  if (pin === undefined) throw new TokenError('config', `${path} holds no PIN in its first line`)
  return pin
}
