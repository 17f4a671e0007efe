// The native binding (package pkcs11js), as far as it is used here. A package.json beside this file names it. It is built only
// where a key is in a token: so it is loaded only when it is needed, and its types are declared here.
import { createRequire } from 'node:module'
import { readManifest } from '../../version.ts'
import { TokenError } from './token-error.ts'

export type Handle = Buffer

export interface Attribute {
  type: number
  value?: Buffer | string | number | boolean
}

export interface Mechanism {
  mechanism: number
  parameter?: { type: number; iv: Buffer; ivBits: number; aad: Buffer; tagBits: number }
}

/** One loaded module. Every call blocks; each throws an error whose message is a name such as `CKR_GENERAL_ERROR`. */
export interface Module {
  load(path: string): void
  C_Initialize(): void
  C_Finalize(): void
  C_GetSlotList(tokenPresent: boolean): Handle[]
  C_GetTokenInfo(slot: Handle): { label: string; serialNumber: string; flags: number }
  C_OpenSession(slot: Handle, flags: number): Handle
  C_Login(session: Handle, user: number, pin: string): void
  C_FindObjectsInit(session: Handle, template: Attribute[]): void
  C_FindObjects(session: Handle, countMax: number): Handle[]
  C_FindObjectsFinal(session: Handle): void
  C_CreateObject(session: Handle, template: Attribute[]): Handle
  C_DestroyObject(session: Handle, object: Handle): void
  C_GetAttributeValue(session: Handle, object: Handle, template: Attribute[]): { value: Buffer }[]
  C_EncryptInit(session: Handle, mechanism: Mechanism, key: Handle): void
  /** The result is a part of `into`. */
  C_Encrypt(session: Handle, plain: Buffer, into: Buffer): Buffer
  C_DecryptInit(session: Handle, mechanism: Mechanism, key: Handle): void
  C_Decrypt(session: Handle, sealed: Buffer, into: Buffer): Buffer
  C_WrapKey(session: Handle, mechanism: Mechanism, by: Handle, key: Handle, into: Buffer): Buffer
  C_UnwrapKey(session: Handle, mechanism: Mechanism, by: Handle, wrapped: Buffer, template: Attribute[]): Handle
}

type Constant =
  | 'CKA_CLASS'
  | 'CKA_EXTRACTABLE'
  | 'CKA_ID'
  | 'CKA_KEY_TYPE'
  | 'CKA_LABEL'
  | 'CKA_SENSITIVE'
  | 'CKA_TOKEN'
  | 'CKA_VALUE'
  | 'CKF_SERIAL_SESSION'
  | 'CKF_USER_PIN_FINAL_TRY'
  | 'CKF_USER_PIN_LOCKED'
  | 'CKK_AES'
  | 'CKK_GENERIC_SECRET'
  | 'CKM_AES_ECB'
  | 'CKM_AES_GCM'
  | 'CKM_AES_KEY_WRAP_PAD'
  | 'CKO_SECRET_KEY'
  | 'CKU_USER'
  | 'CK_PARAMS_GCM'

export type Binding = Readonly<Record<Constant, number>> & { PKCS11: new () => Module }

const require = createRequire(import.meta.url)

/** Throws `TokenError` if the package is absent or not built. */
export function loadBinding(): Binding {
  try {
    return require('pkcs11js') as Binding
  } catch {
    const version = readManifest().peerDependencies?.['pkcs11js']
    const build = version === undefined ? 'npm run build:pkcs11' : `npm install pkcs11js@${version}`
    throw new TokenError(
      'config',
      `the PKCS#11 binding is not built on this host: run \`${build}\` where tokenmill is installed (it needs a C++ compiler, make and Python 3), or take the image with PKCS#11`,
    )
  }
}
