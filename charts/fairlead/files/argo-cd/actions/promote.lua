obj.spec = obj.spec or {}
obj.spec.action = "promote"
return obj
