// The ways in which a key of a token wraps bytes. Each way also identifies the key: the ciphertext of a fixed text is the same
// on every host, and a digest of it is the key's id.
import { createHash, randomBytes } from 'node:crypto'
import { NONCE_BYTES, TAG_BYTES } from '../aead.ts'
import type { Attribute, Binding, Handle, Mechanism, Module } from './binding.ts'
import { TokenError } from './token-error.ts'
import type { MechanismName } from './uri.ts'

/** A key that was found in a session that is logged in. */
export interface FoundKey {
  module: Module
  constants: Binding
  session: Handle
  key: Handle
}

interface Way {
  /** The rights of a key, and the mechanisms of a token, in words. */
  needs: string
  /** Bytes that are always the same for the same key, and that nobody can compute without the key. */
  mark(found: FoundKey): Buffer
  wrap(found: FoundKey, plain: Buffer, aad: Buffer): Buffer
  unwrap(found: FoundKey, wrapped: Buffer, aad: Buffer): Buffer
}

const BLOCK_BYTES = 16
const BITS = 8
/** RFC 5649: a wrapped key is 8 bytes longer than the key, which is padded by up to 7 bytes. */
const WRAP_BYTES = 16

/**
 * The last four bytes of the block are zero: GCM with a 96-bit nonce never encrypts such a block, apart from the block
 * of zeros, which this isn't.
 */
const MARK_BLOCK = Buffer.concat([Buffer.from('tokenmill ke'), Buffer.alloc(4)])
const MARK_KEY = createHash('sha256').update('tokenmill kek id').digest()

const gcm: Way = {
  needs: 'CKA_ENCRYPT, CKA_DECRYPT, CKM_AES_GCM and CKM_AES_ECB',
  mark: ({ module, constants, session, key }) => {
    module.C_EncryptInit(session, { mechanism: constants.CKM_AES_ECB }, key)
    return module.C_Encrypt(session, MARK_BLOCK, Buffer.alloc(2 * BLOCK_BYTES))
  },
  wrap: (found, plain, aad) => sealInToken(found, randomBytes(NONCE_BYTES), plain, aad),
  unwrap: ({ module, constants, session, key }, wrapped, aad) => {
    const sealed = wrapped.subarray(NONCE_BYTES)
    module.C_DecryptInit(session, gcmOf(constants, Buffer.from(wrapped.subarray(0, NONCE_BYTES)), aad), key)
    return module.C_Decrypt(session, sealed, Buffer.alloc(sealed.length))
  },
}

const WAYS = {
  gcm,
  'gcm-token-iv': {
    ...gcm,
    wrap: (found, plain, aad) => {
      // The token writes its nonce into this buffer.
      const nonce = Buffer.alloc(NONCE_BYTES)
      const sealed = sealInToken(found, nonce, plain, aad)
      if (sealed.subarray(0, NONCE_BYTES).some(byte => byte !== 0)) return sealed
      throw new TokenError(
        'config',
        'the token draws no nonce of its own: write mech=gcm in place of mech=gcm-token-iv',
      )
    },
  },
  kwp: {
    needs: 'CKA_WRAP, CKA_UNWRAP and CKM_AES_KEY_WRAP_PAD, and that the session may make objects',
    mark: found => wrapAsKey(found, MARK_KEY),
    wrap: wrapAsKey,
    unwrap: ({ module, constants, session, key }, wrapped) => {
      const mechanism = { mechanism: constants.CKM_AES_KEY_WRAP_PAD }
      const object = module.C_UnwrapKey(session, mechanism, key, wrapped, readable(constants))
      try {
        const [read] = module.C_GetAttributeValue(session, object, [{ type: constants.CKA_VALUE }])
        return read?.value ?? Buffer.alloc(0)
      } finally {
        module.C_DestroyObject(session, object)
      }
    },
  },
} satisfies Record<MechanismName, Way>

export function wayOf(name: MechanismName): Way {
  return WAYS[name]
}

/** `nonce` is read after the encryption, because a token may have written another one into it. */
function sealInToken({ module, constants, session, key }: FoundKey, nonce: Buffer, plain: Buffer, aad: Buffer): Buffer {
  module.C_EncryptInit(session, gcmOf(constants, nonce, aad), key)
  const sealed = module.C_Encrypt(session, plain, Buffer.alloc(plain.length + TAG_BYTES + BLOCK_BYTES))
  return Buffer.concat([nonce, sealed])
}

function gcmOf(constants: Binding, iv: Buffer, aad: Buffer): Mechanism {
  const parameter = { type: constants.CK_PARAMS_GCM, iv, ivBits: NONCE_BYTES * BITS, aad, tagBits: TAG_BYTES * BITS }
  return { mechanism: constants.CKM_AES_GCM, parameter }
}

function wrapAsKey({ module, constants, session, key }: FoundKey, plain: Buffer): Buffer {
  const template = [...readable(constants), { type: constants.CKA_VALUE, value: plain }]
  const object = module.C_CreateObject(session, template)
  try {
    const mechanism = { mechanism: constants.CKM_AES_KEY_WRAP_PAD }
    return module.C_WrapKey(session, mechanism, key, object, Buffer.alloc(plain.length + WRAP_BYTES))
  } finally {
    module.C_DestroyObject(session, object)
  }
}

/** An object of this session only, whose value may be read back. */
function readable(constants: Binding): Attribute[] {
  return [
    { type: constants.CKA_CLASS, value: constants.CKO_SECRET_KEY },
    { type: constants.CKA_KEY_TYPE, value: constants.CKK_GENERIC_SECRET },
    { type: constants.CKA_TOKEN, value: false },
    { type: constants.CKA_SENSITIVE, value: false },
    { type: constants.CKA_EXTRACTABLE, value: true },
  ]
}
