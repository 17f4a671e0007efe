// Makes tokens of SoftHSM and keys in them, by the calls of PKCS#11 that the product doesn't use.
import {
  type Attribute,
  type Binding,
  type Handle,
  loadBinding,
  type Module,
} from '../../../src/vault/pkcs11/binding.ts'

export interface WantedKey {
  object: string
  id?: Buffer
  /** Rights that the key doesn't have, such as `CKA_DECRYPT`. */
  without?: readonly string[]
}

/** The rights of a key, without those in `without`. */
const RIGHTS = ['CKA_ENCRYPT', 'CKA_DECRYPT', 'CKA_WRAP', 'CKA_UNWRAP'] as const

/** The functions of the binding that only this file uses. */
interface AdministrationModule extends Module {
  C_InitToken(slot: Handle, officerPin: string, label: string): string
  C_InitPIN(session: Handle, pin: string): void
  C_Logout(session: Handle): void
  C_GenerateKey(session: Handle, mechanism: { mechanism: number }, template: Attribute[]): Handle
}

type MakingConstant =
  | 'CKA_PRIVATE'
  | 'CKA_VALUE_LEN'
  | 'CKF_RW_SESSION'
  | 'CKF_TOKEN_INITIALIZED'
  | 'CKM_AES_KEY_GEN'
  | 'CKU_SO'

type AdministrationBinding = Omit<Binding, 'PKCS11'> &
  Record<(typeof RIGHTS)[number] | MakingConstant, number> & { PKCS11: new () => AdministrationModule }

/** Initializes a free slot of the module: a token with these keys. */
export function makeToken(path: string, label: string, pin: string, keys: readonly WantedKey[]): void {
  const constants = loadBinding() as AdministrationBinding
  const module = new constants.PKCS11()
  module.load(path)
  module.C_Initialize()
  try {
    const free = module
      .C_GetSlotList(true)
      .find(slot => !(module.C_GetTokenInfo(slot).flags & constants.CKF_TOKEN_INITIALIZED))
    if (!free) throw new Error('SoftHSM offers no free slot')
    module.C_InitToken(free, 'officer', label)
    const session = module.C_OpenSession(free, constants.CKF_SERIAL_SESSION | constants.CKF_RW_SESSION)
    module.C_Login(session, constants.CKU_SO, 'officer')
    module.C_InitPIN(session, pin)
    module.C_Logout(session)
    module.C_Login(session, constants.CKU_USER, pin)
    for (const { object, id, without = [] } of keys)
      module.C_GenerateKey(session, { mechanism: constants.CKM_AES_KEY_GEN }, [
        { type: constants.CKA_TOKEN, value: true },
        { type: constants.CKA_PRIVATE, value: true },
        { type: constants.CKA_SENSITIVE, value: true },
        { type: constants.CKA_EXTRACTABLE, value: false },
        { type: constants.CKA_VALUE_LEN, value: 32 },
        { type: constants.CKA_LABEL, value: object },
        { type: constants.CKA_ID, value: id ?? Buffer.from(object) },
        ...RIGHTS.map(right => ({ type: constants[right], value: !without.includes(right) })),
      ])
  } finally {
    module.C_Finalize()
  }
}
