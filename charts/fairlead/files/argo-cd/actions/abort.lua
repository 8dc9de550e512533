obj.spec = obj.spec or {}
obj.spec.action = "abort"
return obj
