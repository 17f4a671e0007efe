// Values that several examples use. No installation has this entity, these tokens or this key. The card is a published
// test card, encrypted (JWE) to a key that was thrown away.
export const ENTITY = '7f0c1f1e-8f3e-4d0a-9b46-5a4d2f6f9d11'
export const SCOPE = '2c7a1a52-6a0e-4b7e-9d0d-6f3f5f0c9a34'
export const CONTRACT = '5f1d7a3c-0b9e-4a58-8f63-1d2e3c4b5a69'
export const RECEIPT = '0f6e3f0a-2f56-5d11-9f5e-3a7b1c2d4e5f'
export const USER = 'b3a7c1d2-9e8f-4a6b-8c5d-7e6f5a4b3c2d'
export const REUSE_TOKEN = 't01KGD2PF2DFSFRMTVWHPF0Y6HB'
export const THIRD_PARTY_TOKEN = 'tp-8f14e45fceea167a'
export const ALIAS = 'shop-2026'
export const ENCRYPTED_CARD =
  'eyJhbGciOiJFQ0RILUVTIiwiZXBrIjp7Imt0eSI6IkVDIiwieCI6IkNqVTVWaE1xYWVwRVhUN1VtSDFhS24zM1pDaEdxSTBUcGVRTHhyR0ljYUEiLCJ5IjoiSjVVdS1LaHgtT2xyS1pScmgwSDUxZmJjUzVKR0V5NWtrMjBna0N0YnRmTSIsImNydiI6IlAtMjU2In0sImVuYyI6IkEyNTZHQ00iLCJraWQiOiJzaG9wLTIwMjYifQ..lrjp_KYBK5p4dKS7.DVum385qntffpF5IcejEJ7CSLuW9KM8DDEOezLlHIfAdPsbkLvqMXxf4SCRiVTOPHPfbCgelsfy-nPSCve6yO7qkGQbHEIVQBtvN9VdnoD_rP9gDAqamaql9mAoH_hz1Cho_aFU_CFVK.D8RW6w45GD_SjhUywr_84A'
export const ACCEPTED_AT = '2026-01-31T09:30:00.000Z'
export const COMPLETED_AT = '2026-01-31T09:30:00.412Z'
